import { existsSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import process from 'node:process';
import type { Command } from 'commander';
import type { SweepContext } from '../capture/sweep/expected.js';
import { needsRun, type Journal } from '../capture/sweep/journal.js';
import type { ExecuteRun } from '../capture/sweep/execute-run.js';
import type { GpuWatch } from '../capture/sweep/preflight.js';
import type { QueuedJobs } from '../capture/tools/slurm.js';
import { document, type Document, type Issue } from '../model/document.js';
import {
  sweepVersion,
  type SweepFailure,
  type SweepResult,
  type SweepRun,
} from '../model/documents/sweep.js';
import { exitCodeOf, InferscopeError, type ErrorCode } from '../model/errors.js';
import { redactCommand, secretsOfCommand, secretsOfEnvironment } from '../model/redaction.js';
import { shellCommand, shellWords } from '../model/shell.js';
import { makeFolder } from '../model/atomic-write.js';
import { homeFolders } from '../session/home.js';
import { asStorageFailure } from '../vocabulary/storage-failure.js';
import { print, printDocument, reportError, notify, terminalWidth, warn } from './output.js';
import type { LoadableCommand } from './completion.js';
import { resultsFolder } from './results-folder.js';
import { interruptibleTwice } from './interrupt.js';
import { checkSlurm } from './slurm-options.js';
import type { SweepOptions } from './sweep-plan.js';
import { refuseUnused } from './unused-options.js';
import { plural } from '../vocabulary/format.js';

/** Plans, runs or resumes a sweep, and writes its files. Sets the exit code. */
export async function sweepCommand(
  command: readonly string[],
  options: SweepOptions,
  program: { sweep: Command; commands: readonly LoadableCommand[] },
): Promise<void> {
  if (options.init !== undefined) {
    await writeTemplate(options.init === true ? 'models.yaml' : options.init);
    return;
  }
  checkSlurm(options.on, { '--sbatch': options.sbatch });
  if (options.jobs !== undefined && options.on !== 'slurm')
    throw new InferscopeError('E_USAGE', {
      what: '--jobs needs --on slurm',
      why: 'Runs at the same time on one machine would disturb each other.',
      fix: 'Leave out --jobs, or add --on slurm.',
    });
  if (options.resume === undefined)
    refuseUnused(program.sweep, ['retryFailed'], {
      why: 'It retries failed runs of an earlier sweep.',
      fix: 'Add --resume, or leave it out.',
    });
  const { readSweepRequest: requestedSweep } = await import('./sweep-plan.js');
  const requested = requestedSweep(command, options);
  if (requested === null && options.resume === undefined) throw nothingToRun();
  if (requested?.plan.kind === 'grid') {
    const { checkCommandOptions } = await import('./sweep-command-options.js');
    await checkCommandOptions(requested.plan.runs, program);
  }
  const folder = options.dryRun ? resolve(options.output) : resultsFolder(options.output);
  const { newJournal, resumedJournal, earlierDurations: timesBefore } = await import('./sweep-journal.js');
  const { refuseRunning } = await import('../capture/sweep/journal.js');
  const { noGpus, watchGpus } = await import('../capture/sweep/preflight.js');
  const { findQueuedTasks } = await import('../capture/sweep/execute-on-slurm.js');
  const journal =
    options.resume === undefined
      ? newJournal(requested!, options, folder)
      : resumedJournal(requested, options, folder);
  refuseRunning(journal, await findQueuedTasks(journal.sweep.runs));
  // GPUs of this machine say nothing about those of the Slurm nodes.
  const gpus = options.on === 'slurm' ? noGpus : await watchGpus();
  try {
    const { expectRuns } = await import('../capture/sweep/expected.js');
    const issues = await expectRuns(
      journal.sweep.runs.filter(needsRun),
      requested?.dimensions ?? new Map(),
      await sweepContext(journal, gpus, timesBefore(journal.folder), options.dryRun === true),
    );
    if (options.dryRun) await showPlan(journal, issues, options);
    else {
      if (!options.quiet) for (const { text } of issues) warn(text);
      await runPlannedSweep(journal, gpus, issues, options);
    }
  } finally {
    gpus.close();
  }
}

async function writeTemplate(path: string): Promise<void> {
  if (existsSync(path)) {
    throw new InferscopeError('E_USAGE', {
      what: `${path} already exists`,
      why: 'A template never overwrites a file.',
      fix: `Choose another file: inferscope sweep --init ${path.replace(/(\.ya?ml)?$/, '-2.yaml')}`,
    });
  }
  const { sweepTemplate } = await import('../capture/sweep/template.js');
  try {
    makeFolder(dirname(resolve(path)));
    writeFileSync(path, sweepTemplate, { flag: 'wx' });
  } catch (error) {
    throw asStorageFailure(error, { path, doing: 'write the template' });
  }
  notify(`template written; then: inferscope sweep --config ${path} --dry-run`);
  print(path);
}

function nothingToRun(): InferscopeError {
  return new InferscopeError('E_USAGE', {
    what: 'no configurations to sweep',
    why: 'A sweep needs a file (--config), lists (--model, --input-len, --output-len, --batch-size), or --grid with a command.',
    fix: 'To write a commented template, type: inferscope sweep --init',
  });
}

/** What the estimates of runs need. */
async function sweepContext(
  { sweep }: Journal,
  gpus: GpuWatch,
  earlierDurations: ReadonlyMap<string, number>,
  queryHub: boolean,
): Promise<SweepContext> {
  const { findModel, findSizedModel } = await import('../engines/model-files/find-model.js');
  const { placesOf } = await import('./sweep-places.js');
  return {
    placeOf: placesOf(sweep.kind, gpus.capacities),
    // Only --dry-run queries the hub for models that are not on this machine.
    configOf: async (model) => (await (queryHub ? findSizedModel(model) : findModel(model))).config,
    earlierSeconds: earlierDurations,
  };
}

/** The sweep as shown and saved in reports: secrets in command lines stay in the journal, which needs them. */
function documentOf(sweep: SweepResult, issues: Issue[]): Document<SweepResult> {
  const runs = sweep.runs.map((run) => {
    const words = redactCommand(run.arguments, secretsOf(sweep));
    return { ...run, arguments: words };
  });
  return document('sweep', sweepVersion, { ...sweep, runs }, issues);
}

const secretsOf = ({ runs }: SweepResult): string[] => [
  ...new Set([
    ...secretsOfEnvironment(process.env),
    ...runs.flatMap((run) => secretsOfCommand(run.arguments)),
  ]),
];

async function showPlan({ sweep }: Journal, issues: Issue[], { json }: SweepOptions): Promise<void> {
  if (json) {
    printDocument(documentOf(sweep, issues));
    return;
  }
  const { sweepPlanView } = await import('../views/sweep-plan.js');
  const { terminalView } = await import('../render/terminal/view.js');
  const program = ['node', relative(process.cwd(), process.argv[1]!) || 'inferscope'];
  print(terminalView(sweepPlanView(documentOf(sweep, issues), program), { width: terminalWidth() }));
}

async function runPlannedSweep(
  journal: Journal,
  gpus: GpuWatch,
  issues: Issue[],
  options: SweepOptions,
): Promise<void> {
  const { runSweep } = await import('../capture/sweep/run-sweep.js');
  const { sweepProgress } = await import('./sweep-progress.js');
  const { writeSweepFiles } = await import('./sweep-files.js');
  const { discardUnstarted } = await import('../capture/sweep/journal.js');
  const { claimFolder } = await import('../capture/sweep/claim.js');
  const release = claimFolder(journal.folder);
  const progress = sweepProgress(journal.sweep, options);
  const executor = await chooseExecutor(journal, options, progress.onQueue);
  const secrets = secretsOf(journal.sweep);
  let obstacle: SweepFailure | null;
  try {
    obstacle = await interruptibleTwice((signal, kill) =>
      runSweep(journal, {
        ...executor,
        gpus,
        folders: [journal.folder, homeFolders().sessions],
        secrets,
        signal,
        kill,
        onRun: progress.onRun,
      }),
    );
  } catch (error) {
    if (options.resume === undefined) discardUnstarted(journal);
    throw asStorageFailure(error, { path: journal.folder, doing: 'save the journal of the sweep' });
  } finally {
    progress.end();
    release();
  }
  const sweepDocument = documentOf(journal.sweep, issues);
  const files = await writeSweepFiles(journal, sweepDocument);
  if (options.json) printDocument(sweepDocument);
  else {
    const { terminalView } = await import('../render/terminal/view.js');
    const { sweepView } = await import('../views/sweep.js');
    const view = sweepView(sweepDocument, {
      reported: obstacle,
      folder: relative(process.cwd(), journal.folder),
    });
    print(terminalView(view, { width: terminalWidth() }));
  }
  if (!options.quiet) for (const path of files) notify(relative(process.cwd(), path));
  reportSweepEnd(journal, obstacle, options);
}

/** Where runs execute, and how many at a time: on Slurm the scheduler decides. */
async function chooseExecutor(
  { folder, sweep }: Journal,
  { on, sbatch = '', jobs }: SweepOptions,
  onQueue: (queued: QueuedJobs | null) => void,
): Promise<{ execute: ExecuteRun; lanes: number }> {
  if (on !== 'slurm') {
    const { executeHere } = await import('../capture/sweep/execute-run.js');
    return { execute: executeHere, lanes: 1 };
  }
  const { executorOnSlurm } = await import('../capture/sweep/execute-on-slurm.js');
  const execute = executorOnSlurm({
    folder: join(folder, `sweep-${sweep.stamp}`, 'slurm'),
    options: shellWords(sbatch) ?? [],
    maxTasks: jobs ?? null,
    onQueue,
  });
  return { execute, lanes: sweep.runs.length };
}

/** Prints how to continue. Sets the exit code: of what prevents further runs, 130 if stopped, 4 if a configuration failed. */
function reportSweepEnd(
  { path, sweep }: Journal,
  obstacle: SweepFailure | null,
  options: SweepOptions,
): void {
  const { on, sbatch } = options;
  const placeOptions =
    on === 'slurm' ? ['--on', on, ...(sbatch === undefined ? [] : ['--sbatch', sbatch])] : [];
  const resume = shellCommand([
    'inferscope',
    'sweep',
    '--resume',
    relative(process.cwd(), path),
    ...placeOptions,
  ]);
  const hasOutcome = (...outcomes: SweepRun['outcome'][]) =>
    sweep.runs.some((run) => outcomes.includes(run.outcome));
  if (obstacle !== null) {
    const { code, what, why, fix } = obstacle;
    const remaining = `Not started or not finished: ${sweep.runs.filter(needsRun).length} of ${plural(sweep.runs.length, 'run')}.`;
    const parts = { what, why: `${why}\n${remaining}`, fix: `${fix}\nThen: ${resume}` };
    process.exitCode = reportError(new InferscopeError(code as ErrorCode, parts), false);
  } else if (sweep.status === 'interrupted') {
    warn(`stopped; everything measured is saved. Resume with: ${resume}`);
    process.exitCode = exitCodeOf.E_INTERRUPTED;
  } else if (hasOutcome('failed', 'partial', 'timed_out')) {
    const retryable = sweep.runs.some(({ failure }) => failure?.infrastructure);
    notify(
      `${retryable ? 'retry runs that failed for machine faults' : 'retry failed runs'}: ${resume}${retryable ? '' : ' --retry-failed'}`,
    );
    process.exitCode = exitCodeOf.E_WORKLOAD_FAILED;
  }
}

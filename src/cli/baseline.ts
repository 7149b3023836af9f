import { existsSync } from 'node:fs';
import process from 'node:process';
import type { Command } from 'commander';
import type { Baseline } from '../model/documents/baseline.js';
import { exitCodeOf, InferscopeError } from '../model/errors.js';
import type { Session } from '../session/open.js';
import { examples } from './examples.js';
import { print } from './output.js';

const selectorHelp = 'id prefix, name, @last or @last~1';

interface SetOptions {
  name: string;
  file?: string;
  json?: boolean;
}

interface CheckCommandOptions {
  baseline: string;
  tolerance: number;
  withinProcess?: boolean;
  json?: boolean;
}

const formatOf = ({ json = false }: { json?: boolean }) => ({
  format: json ? ('json' as const) : ('text' as const),
});

export function define(command: Command): void {
  defineSet(command);
  defineCheck(command);
  defineList(command);
  command.addHelpText(
    'after',
    examples(
      ['inferscope baseline set llm-b1 --name main', 'save the reference for later runs'],
      ['inferscope baseline check @last --baseline main --tolerance 5%', 'exit with code 1 on a regression'],
    ),
  );
}

function defineSet(command: Command): void {
  command
    .command('set')
    .description('save the figures of one session, or of several runs of the same workload, as a baseline')
    .argument('<sessions...>', selectorHelp)
    .option('--name <name>', 'name of the baseline', 'default')
    .option('--file <file>', 'write the baseline to this file instead, e.g. in a git repository')
    .option('--json', 'print one inferscope/baseline document')
    .addHelpText(
      'after',
      examples(
        ['inferscope baseline set @last', 'make the newest session the default baseline'],
        [
          'inferscope baseline set run1 run2 run3 --file perf/baseline.json',
          'save three runs with their variation, in a file to commit',
        ],
      ),
    )
    .action(async (selectors: string[], options: SetOptions) => {
      const { checkBaselineName, writeBaseline } = await import('../compare/metrics/baseline-store.js');
      checkBaselineName(options.name);
      const sampled = await sampleOf(selectors);
      const baseline = { name: options.name, set_at: new Date().toISOString(), ...sampled };
      const path = await writeBaseline(baseline, options.file);
      const [{ mixedWorkloads }, { document }, { baselineView }, { showView }] = await Promise.all([
        import('../compare/metrics/sample.js'),
        import('../model/document.js'),
        import('../views/baseline.js'),
        import('./show-view.js'),
      ]);
      await showView(
        baselineView(document('baseline', '1.0', baseline, mixedWorkloads(sampled)), path),
        formatOf(options),
      );
    });
}

function defineCheck(command: Command): void {
  command
    .command('check')
    .description('compare sessions with a baseline and exit with code 1 on a significant regression')
    .argument('[sessions...]', `${selectorHelp} (default: @last)`)
    .option('--baseline <name>', 'baseline name or file, or a session such as @last~1', 'default')
    .option('--tolerance <share>', 'largest regression of a metric that passes', parseTolerance, 0.05)
    .option(
      '--within-process',
      'treat repeats of one process as independent (ignores variation between launches)',
    )
    .option('--json', 'print one inferscope/baseline-check document')
    .addHelpText(
      'after',
      examples(
        ['inferscope baseline check', 'compare the newest session with the default baseline'],
        [
          'inferscope baseline check new1 new2 --baseline perf.json --tolerance 3%',
          'compare two runs with a file, in CI',
        ],
      ),
    )
    .action(async (selectors: string[], options: CheckCommandOptions) => {
      const baseline = await baselineOf(options.baseline);
      const current = await sampleOf(selectors.length > 0 ? selectors : ['@last']);
      const { checkBaseline } = await import('../compare/metrics/check.js');
      const { document } = await import('../model/document.js');
      const comparison = document(
        'baseline-check',
        '1.0',
        checkBaseline(baseline, current, {
          tolerance: options.tolerance,
          withinProcess: options.withinProcess === true,
        }),
      );
      const [{ baselineCheckView }, { showView }] = await Promise.all([
        import('../views/baseline.js'),
        import('./show-view.js'),
      ]);
      await showView(baselineCheckView(comparison), formatOf(options));
      if (comparison.data.result === 'regression') process.exitCode = exitCodeOf.E_CHECK_FAILED;
    });
}

function defineList(command: Command): void {
  command
    .command('list')
    .alias('ls')
    .description('list the names of saved baselines')
    .addHelpText(
      'after',
      examples(
        ['inferscope baseline list', 'print one name per line'],
        ['inferscope baseline ls', 'use the short form'],
      ),
    )
    .action(async () => {
      const { baselineNames } = await import('../compare/metrics/baseline-store.js');
      const names = await baselineNames();
      print(
        names.length > 0 ? names.join('\n') : 'no baseline is saved; inferscope baseline set @last saves one',
      );
    });
}

/** Finds a baseline by its name or file, else a session with that name. */
async function baselineOf(nameOrFile: string): Promise<Baseline> {
  const { baselineNames, isBaselineFile, readBaseline } =
    await import('../compare/metrics/baseline-store.js');
  // A session's name may end in .json, too.
  const isFile = isBaselineFile(nameOrFile) && existsSync(nameOrFile);
  if (isFile || (await baselineNames()).includes(nameOrFile)) return readBaseline(nameOrFile);
  try {
    const sampled = await sampleOf([nameOrFile]);
    return { name: nameOrFile, set_at: new Date().toISOString(), ...sampled };
  } catch (error) {
    if (
      nameOrFile.startsWith('@') ||
      !(error instanceof InferscopeError) ||
      error.code !== 'E_SESSION_NOT_FOUND'
    )
      throw error;
    return readBaseline(nameOrFile);
  }
}

async function sampleOf(selectors: readonly string[]) {
  const [{ openSession }, { comparable, sampleSessions }] = await Promise.all([
    import('../session/open.js'),
    import('../compare/metrics/sample.js'),
  ]);
  const sessions: Session[] = [];
  for (const selector of selectors) {
    const session = await openSession(selector, undefined, comparable);
    if (!sessions.some(({ id }) => id === session.id)) sessions.push(session);
  }
  return sampleSessions(sessions);
}

/** "5%", "5 %" or "0.05". */
function parseTolerance(text: string): number {
  const match = /^(\d+(?:\.\d+)?)\s*(%?)$/.exec(text.trim());
  const value = match ? Number(match[1]) / (match[2] ? 100 : 1) : Number.NaN;
  if (value >= 0 && value < 1) return value;
  throw new InferscopeError('E_USAGE', {
    what: `--tolerance ${text} is not a share`,
    why: 'It takes a percentage below 100 % or a fraction below 1.',
    fix: 'Type for example: --tolerance 5% (the same as 0.05)',
  });
}

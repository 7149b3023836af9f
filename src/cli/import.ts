import { resolve } from 'node:path';
import { Option, type Command } from 'commander';
import { InferscopeError } from '../model/errors.js';
import { type ContextOptions, defineContextOptions, saveContext, readContext } from './context-options.js';
import { examples } from './examples.js';
import { abortable, interruptible } from './interrupt.js';
import { wholeNumberParser } from './numbers.js';
import { checkSlurm, onOption, sbatchOption, type SlurmOptions } from './slurm-options.js';

interface ImportCommandOptions extends ContextOptions, SlurmOptions {
  session?: string;
  name?: string;
  tag: string[];
  raw: boolean;
  analyze: boolean;
  json?: boolean;
  quiet?: boolean;
  ranks?: boolean;
  resume?: boolean;
  jobs?: number;
  sbatchMerge?: string;
}

export function define(command: Command): void {
  command
    .argument(
      '<file...>',
      'captures: nsys .nsys-rep, .sqlite or parquet folder; PyTorch (Kineto) .json, .json.gz; ncu ' +
        '.ncu-rep or CSV; logs of cuBLAS, NCCL, nvidia-smi and vLLM; results of vLLM, SGLang, AIPerf, InferenceX, GuideLLM, llama-bench, ' +
        'optimum-benchmark; memory profiles; inferscope records',
    )
    .option(
      '--ranks',
      "one file per rank of a job, into one session on one clock: files, folders or patterns ('dir/**')",
    )
    .option('--resume', 'with --ranks: continue an interrupted import, skipping the files already imported')
    .option(
      '--jobs <n>',
      'with --ranks: files imported at the same time (default: as many as cores and free memory allow)',
      wholeNumberParser('--jobs', { min: 1, example: 4 }),
    )
    .addOption(onOption('with --ranks: where files are imported'))
    .addOption(sbatchOption())
    .option('--sbatch-merge <options>', 'additional options of the job that merges all ranks, e.g. --mem=16G')
    .option('--session <selector>', 'add the files to this session instead of creating one')
    .option('--model <name>', 'model that ran: a preset, config.json, or its folder')
    .option(
      '--roofline <file>',
      'roofline of the captured GPU: output of inferscope roofline --json on its machine (default: roofline of this machine, if it has the same GPU)',
    )
    .option('--name <name>', 'name the session')
    .addOption(new Option('--tag <tag...>', 'tag the session').default([], 'none'))
    .option('--no-raw', 'save the tables only, not the raw files')
    .option('--no-analyze', 'import only; no summary, no report')
    .option('--json', 'print one document: inferscope/trace, counters, gemms, results or session-show')
    .option('--quiet', 'no progress on stderr');
  defineContextOptions(command)
    .addHelpText(
      'after',
      examples(
        ['inferscope import llama-b1.nsys-rep --name b1', 'create a session with summary and report'],
        ["inferscope import 'traces/**' --ranks", 'join the traces of all ranks of a job'],
      ),
    )
    .action(async (files: string[], options: ImportCommandOptions) => {
      const { session, model, roofline } = options;
      if (session !== undefined && (model !== undefined || roofline !== undefined)) {
        throw new InferscopeError('E_USAGE', {
          what: '--model and --roofline need a new session',
          why: `--session ${session} adds files to a saved session with a known model and GPU.`,
          fix: 'Import all files together, without --session.',
        });
      }
      if (session !== undefined && (options.name !== undefined || options.tag.length > 0)) {
        throw new InferscopeError('E_USAGE', {
          what: '--name and --tag need a new session',
          why: `--session ${session} adds files to a saved session.`,
          fix: `To rename it, type: inferscope session rename ${session} ${options.name ?? 'NAME'}`,
        });
      }
      if (options.ranks) return importAllRanks(files, options);
      const { resume, jobs, on, sbatch, sbatchMerge } = options;
      const [ranksOption] = [
        ...(resume ? ['--resume'] : []),
        ...(jobs === undefined ? [] : [`--jobs ${jobs}`]),
        ...(on === 'local' ? [] : [`--on ${on}`]),
        ...(sbatch === undefined ? [] : ['--sbatch']),
        ...(sbatchMerge === undefined ? [] : ['--sbatch-merge']),
      ];
      if (ranksOption !== undefined)
        throw new InferscopeError('E_USAGE', {
          what: `${ranksOption.split(' ')[0]} needs --ranks`,
          why: 'It applies to the import of one file per rank.',
          fix: `inferscope import ${files.join(' ')} --ranks ${ranksOption.startsWith('--sbatch') ? `--on slurm ${ranksOption} OPTIONS` : ranksOption}`,
        });
      const { importInChild: importApart, expandCapturePaths: wholeCaptures } =
        await import('./import-in-child.js');
      const paths = wholeCaptures(files.map((file) => resolve(file)));
      if (await importApart(paths)) return;
      // Model and roofline are part of a new session; other options are saved as its context.
      const { model: _, roofline: _roofs, ...importOptions } = options;
      const context = await readContext(importOptions);
      const { runImport } = await import('./import-run.js');
      const id = await interruptible((signal) => runImport(paths, options, signal));
      await saveContext(id, context);
      const { showSession } = await import('./session-summary.js');
      await showSession(id, options);
    });
}

/** @throws E_USAGE with --session */
async function importAllRanks(files: readonly string[], options: ImportCommandOptions): Promise<void> {
  if (options.session !== undefined)
    throw new InferscopeError('E_USAGE', {
      what: '--ranks creates a new session',
      why: `--session ${options.session} adds files to a saved session.`,
      fix: 'Leave out --session.',
    });
  checkSlurm(options.on, { '--sbatch': options.sbatch, '--sbatch-merge': options.sbatchMerge });
  const { model: _, roofline: _roofs, session: _session, ...importOptions } = options;
  const context = await readContext(importOptions);
  const { importRanks } = await import('./ranks/import-ranks.js');
  const { session: _none, ...rankOptions } = options;
  const id = await abortable((signal) => importRanks(files, rankOptions, signal));
  await saveContext(id, context);
  const { showSession } = await import('./session-summary.js');
  await showSession(id, options);
}

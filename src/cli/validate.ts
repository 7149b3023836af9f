import { join } from 'node:path';
import process from 'node:process';
import type { Command } from 'commander';
import { exitCodeOf, InferscopeError } from '../model/errors.js';
import { examples } from './examples.js';
import { print, printDocument, talk, terminalWidth } from './output.js';
import { configurationOptions, type ConfigurationTyped } from './profile-configuration.js';

interface Typed extends ConfigurationTyped {
  tolerance: number;
  history?: boolean;
  output: string;
  name?: string;
  json?: boolean;
}

export function define(command: Command): void {
  const described = command
    .argument(
      '[profiles...]',
      'JSON files of schema 2.0, folders of them, or memory sessions (default: results/memory-profiles, else all memory sessions)',
    )
    .option('--tolerance <share>', 'largest error of a total: 5% or 0.05', parseTolerance, 0.05)
    .option('--history', 'the trend over all validations that were kept')
    .option(
      '--output <folder>',
      'where the summary, the CSV and the page go',
      join('results', 'validation-reports'),
    )
    .option('--name <name>', 'name of the session')
    .option('--json', 'print one inferscope/validate document (with --history inferscope/validate-history)');
  configurationOptions(described)
    .addHelpText(
      'after',
      examples(
        [
          'inferscope validate results/memory-profiles --tolerance 5%',
          'how far the calculator is off; exit code 1 beyond',
        ],
        [
          'inferscope validate other.json --engine vllm --model llama-3.1-8b',
          'a profile of another tool that does not state its configuration',
        ],
      ),
    )
    .action(run);
}

async function run(profiles: string[], typed: Typed): Promise<void> {
  const { validate, validationHistory, writeTexts } = await import('./validate-run.js');
  const { viewOf } = await import('../views/registry.js');
  const { terminalView } = await import('../render/terminal/view.js');
  const how = { width: terminalWidth() };
  if (typed.history) {
    if (profiles.length > 0) throw both(profiles);
    const made = await validationHistory();
    if (typed.json) printDocument(made);
    else print(terminalView(await viewOf({ kind: 'validate-history', document: made }), how));
    return;
  }
  const document = await validate(profiles, typed);
  const files = await writeTexts(document, new Date(), typed.output);
  if (typed.json) printDocument(document);
  else print(terminalView(await viewOf({ kind: 'validate', document }), how));
  // A path a line: no terminal breaks it, and it can be copied.
  talk(['', `session ${document.data.session!.id} kept`, ...Object.values(files)].join('\n  '));
  if (document.data.result !== 'passed') process.exitCode = exitCodeOf.E_CHECK_FAILED;
}

function both(profiles: readonly string[]): InferscopeError {
  return new InferscopeError('E_USAGE', {
    what: '--history and profiles were both given',
    why: 'The trend is over validations that were kept.',
    fix: `Type inferscope validate --history, or inferscope validate ${profiles.join(' ')}`,
  });
}

function parseTolerance(text: string): number {
  const match = /^\s*(\d+(?:\.\d+)?)\s*(%?)\s*$/.exec(text);
  const share = match ? Number(match[1]) / (match[2] ? 100 : 1) : Number.NaN;
  if (share > 0 && share < 1) return share;
  throw new InferscopeError('E_USAGE', {
    what: `--tolerance ${text} cannot be read`,
    why: 'It is a percentage below 100 %, or a share below 1.',
    fix: 'Type for example: --tolerance 5%',
  });
}

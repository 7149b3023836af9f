import { join } from 'node:path';
import process from 'node:process';
import type { Command } from 'commander';
import { exitCodeOf, InferscopeError } from '../model/errors.js';
import { examples } from './examples.js';
import { print, printDocument, notify, terminalWidth } from './output.js';
import { defineConfigurationOptions, type ConfigurationOptions } from './profile-configuration.js';

interface ValidateOptions extends ConfigurationOptions {
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
    .option('--tolerance <share>', 'largest allowed error of a total: 5% or 0.05', parseTolerance, 0.05)
    .option('--history', 'show the trend over all saved validations')
    .option(
      '--output <folder>',
      'folder for summary, CSV and HTML page',
      join('results', 'validation-reports'),
    )
    .option('--name <name>', 'name the session')
    .option('--json', 'print one inferscope/validate document (with --history inferscope/validate-history)');
  defineConfigurationOptions(described)
    .addHelpText(
      'after',
      examples(
        [
          'inferscope validate results/memory-profiles --tolerance 5%',
          'show estimation errors; exit with code 1 above 5 %',
        ],
        [
          'inferscope validate other.json --engine vllm --model llama-3.1-8b',
          'state the configuration of a profile that another tool wrote',
        ],
      ),
    )
    .action(run);
}

async function run(profiles: string[], options: ValidateOptions): Promise<void> {
  const { validate, validationHistory, writeValidationFiles: writeTexts } = await import('./validate-run.js');
  const { viewOf } = await import('../views/registry.js');
  const { terminalView } = await import('../render/terminal/view.js');
  const how = { width: terminalWidth() };
  if (options.history) {
    if (profiles.length > 0) throw historyWithProfiles(profiles);
    const made = await validationHistory();
    if (options.json) printDocument(made);
    else print(terminalView(await viewOf({ kind: 'validate-history', document: made }), how));
    return;
  }
  const document = await validate(profiles, options);
  const files = await writeTexts(document, new Date(), options.output);
  if (options.json) printDocument(document);
  else print(terminalView(await viewOf({ kind: 'validate', document }), how));
  // One path per line, so it can be copied.
  notify(['', `session saved: ${document.data.session!.id}`, ...Object.values(files)].join('\n  '));
  if (document.data.result !== 'passed') process.exitCode = exitCodeOf.E_CHECK_FAILED;
}

function historyWithProfiles(profiles: readonly string[]): InferscopeError {
  return new InferscopeError('E_USAGE', {
    what: '--history does not take profiles',
    why: 'The trend covers saved validations.',
    fix: `Type inferscope validate --history, or inferscope validate ${profiles.join(' ')}`,
  });
}

function parseTolerance(text: string): number {
  const match = /^\s*(\d+(?:\.\d+)?)\s*(%?)\s*$/.exec(text);
  const share = match ? Number(match[1]) / (match[2] ? 100 : 1) : Number.NaN;
  if (share > 0 && share < 1) return share;
  throw new InferscopeError('E_USAGE', {
    what: `invalid --tolerance ${text}`,
    why: 'It is a percentage above 0 and below 100 %, or a fraction above 0 and below 1.',
    fix: 'Type for example: --tolerance 5%',
  });
}

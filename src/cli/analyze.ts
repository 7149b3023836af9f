import { type Command, Option } from 'commander';
import { type Allowed, allowable } from '../ask/allowable.js';
import { InferscopeError } from '../model/errors.js';
import { examples } from './examples.js';
import { wholeNumber } from './numbers.js';
import type { AnalyzeOptions } from './analyze-run.js';

export function define(command: Command): void {
  command
    .description(
      'answer a question from what a session holds: a configured model with read-only tools, every number checked; without a model the stored analyses and findings',
    )
    .argument('[session]', 'id or its unique beginning, name, @last, @last~1')
    .option('--session <selector>', 'the same', '@last')
    .option('--question <text>', 'what to answer; by default: where the time goes, why, and what to change')
    .option('--deeper', 'more steps, and the capture that would tell more')
    .option('--continue', 'continue the conversation that is kept with the session')
    .option('--model <name>', 'instead of the configured one; none: without a model')
    .addOption(
      new Option('--allow <kinds>', `what may be sent beside names and numbers: ${allowable.join(', ')}`)
        .argParser(allowed)
        .default([], 'nothing'),
    )
    .option('--dry-run', 'print what would be sent, and send nothing')
    .option(
      '--sql <n>',
      'print the query behind [qn]: of this question without a model, of the last answer with one',
      wholeNumber('--sql', 0, 1),
    )
    .option('--json', 'print one inferscope/analyze document')
    .addHelpText(
      'after',
      examples(
        ['inferscope analyze --question "why is decode slow?"', 'about the newest session'],
        ['inferscope analyze llm-b1 --deeper --dry-run', 'what a model would be sent'],
      ),
    )
    .action(async (selector: string | undefined, options: AnalyzeOptions) => {
      const { analyzeCommand } = await import('./analyze-run.js');
      await analyzeCommand(selector ?? options.session, options);
    });
}

function allowed(text: string, before: Allowed[]): Allowed[] {
  const found = text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .map((part) => {
      const one = allowable.find((kind) => kind === part);
      if (one) return one;
      throw new InferscopeError('E_USAGE', {
        what: `--allow takes ${allowable.join(', ')}, not "${part}"`,
        why: 'inferscope analyze --help shows every option.',
        fix: 'inferscope analyze --allow paths,hosts',
      });
    });
  return [...new Set([...before, ...found])];
}

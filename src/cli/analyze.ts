import { type Command, Option } from 'commander';
import { type AllowedData, allowableData } from '../ask/allowable.js';
import { InferscopeError } from '../model/errors.js';
import { examples } from './examples.js';
import { wholeNumberParser } from './numbers.js';
import type { AnalyzeOptions } from './analyze-run.js';

export function define(command: Command): void {
  command
    .description(
      'answer a question about a session with a configured model (read-only tools, every number checked), or without a model from the stored analyses and findings',
    )
    .argument('[session]', 'id prefix, name, @last or @last~1')
    .argument('[question]', 'same as --question; with a question alone, the session is the newest')
    .option('--session <selector>', 'same as the argument', '@last')
    .option('--question <text>', 'question to answer (default: where the time goes, why, and what to change)')
    .option('--deeper', 'allow more steps, and suggest the capture that would show more')
    .option('--continue', "continue the session's saved conversation")
    .option('--model <name>', 'model to ask instead of the configured one; none: answer without a model')
    .addOption(
      new Option(
        '--allow <kinds>',
        `data that may be sent in addition to names and numbers: ${allowableData.join(', ')}`,
      )
        .argParser(allowedKinds)
        .default([], 'nothing'),
    )
    .option('--dry-run', 'print what would be sent; send nothing')
    .option(
      '--sql <n>',
      'print the SQL behind [qn] of the last answer (without a model: of this question)',
      wholeNumberParser('--sql', { min: 0, example: 1 }),
    )
    .option('--json', 'print one inferscope/analyze document')
    .addHelpText(
      'after',
      examples(
        ['inferscope analyze "why is decode slow?"', 'ask about the newest session'],
        ['inferscope analyze llm-b1 --deeper --dry-run', 'show what would be sent to the model'],
      ),
    )
    .action(async (first: string | undefined, second: string | undefined, options: AnalyzeOptions) => {
      const { analyzeCommand } = await import('./analyze-run.js');
      // No session has a name with a space.
      const [selector, argument] =
        second === undefined && first?.includes(' ') ? [undefined, first] : [first, second];
      if (argument !== undefined && options.question !== undefined)
        throw twoQuestions(argument, options.question);
      const question = argument ?? options.question;
      await analyzeCommand(selector ?? options.session, {
        ...options,
        ...(question === undefined ? {} : { question }),
      });
    });
}

const twoQuestions = (first: string, second: string): InferscopeError =>
  new InferscopeError('E_USAGE', {
    what: 'two questions were given',
    why: `One is the argument "${first}", the other --question "${second}".`,
    fix: 'Ask one after the other.',
  });

function allowedKinds(text: string, before: AllowedData[]): AllowedData[] {
  const kinds = text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .map((part) => {
      const known = allowableData.find((kind) => kind === part);
      if (known) return known;
      throw new InferscopeError('E_USAGE', {
        what: `--allow takes ${allowableData.join(', ')}, not "${part}"`,
        why: 'inferscope analyze --help shows every option.',
        fix: 'inferscope analyze --allow paths,hosts',
      });
    });
  return [...new Set([...before, ...kinds])];
}

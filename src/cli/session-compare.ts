import { Option, type Command } from 'commander';
import type { Session } from '../session/open.js';
import { examples } from './examples.js';
import { showView, type Shown } from './show-view.js';
import { print } from './output.js';

interface CompareOptions extends Shown {
  ai?: boolean;
}

/** Adds `session compare` to the command `session`. */
export function defineCompare(command: Command): void {
  command
    .command('compare')
    .description('what changed between sessions: by stage, class, kernel, tile and environment')
    .argument('<sessions...>', 'two or more: id or its unique beginning, name, @last, @last~1')
    .addOption(
      new Option('--format <format>', 'of the output').choices(['text', 'md', 'json']).default('text'),
    )
    .option('--html <file>', 'also write it as one page')
    .option('--ai', 'add what a configured model makes of it (docs/guides/ask-questions.md)')
    .option('--json', 'print one inferscope/compare document')
    .addHelpText(
      'after',
      examples(
        ['inferscope session compare llm-b1 llm-b8', 'the second against the first'],
        ['inferscope session compare b1 b4 b16 --html sweep.html', 'a matrix of three, also as a page'],
      ),
    )
    .action(async (selectors: string[], options: CompareOptions) => {
      const [{ compareSessions }, { openSession }, { compareView }, { ensureReportPath }] = await Promise.all(
        [
          import('../compare/sessions/compare.js'),
          import('../session/open.js'),
          import('../views/compare.js'),
          import('./report-file.js'),
        ],
      );
      const narrative = options.ai ? await import('./analyze-narrative.js') : null;
      const settings = await narrative?.comparisonModel();
      if (options.html !== undefined) await ensureReportPath(options.html);
      const sessions: Session[] = [];
      for (const selector of selectors) sessions.push(await openSession(selector));
      const found = await compareSessions(sessions);
      const told =
        narrative && settings ? await narrative.comparisonNarrative(sessions, found.data, settings) : null;
      await showView(
        compareView(told ? { ...found, data: { ...found.data, narrative: told } } : found),
        options,
      );
      if (told && narrative && !options.json && options.format === 'text')
        print(`\n${await narrative.narrativeLines(told)}`);
    });
}

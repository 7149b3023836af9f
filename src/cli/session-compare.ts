import { Option, type Command } from 'commander';
import type { Session } from '../session/open.js';
import { examples } from './examples.js';
import { showView, type ViewOptions } from './show-view.js';
import { print } from './output.js';

interface CompareOptions extends ViewOptions {
  ai?: boolean;
}

/** Adds `session compare` to the command `session`. */
export function defineCompare(command: Command): void {
  command
    .command('compare')
    .description('compare sessions by stage, class, kernel, tile and environment')
    .argument('<sessions...>', 'two or more sessions: id prefix, name, @last or @last~1')
    .addOption(
      new Option('--format <format>', 'output format').choices(['text', 'md', 'json']).default('text'),
    )
    .option('--html <file>', 'also write a self-contained HTML page')
    .option('--ai', 'add a narrative by the configured model (docs/guides/ask-questions.md)')
    .option('--json', 'print one inferscope/compare document')
    .addHelpText(
      'after',
      examples(
        ['inferscope session compare llm-b1 llm-b8', 'compare the second with the first'],
        ['inferscope session compare b1 b4 b16 --html sweep.html', 'compare three, also as an HTML page'],
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
      const settings = await narrative?.modelForComparison();
      if (options.html !== undefined) await ensureReportPath(options.html, '--html');
      const sessions: Session[] = [];
      for (const selector of selectors) sessions.push(await openSession(selector));
      const comparison = await compareSessions(sessions);
      const narrated =
        narrative && settings ? await narrative.narrateComparison(sessions, comparison.data, settings) : null;
      await showView(
        compareView(
          narrated ? { ...comparison, data: { ...comparison.data, narrative: narrated } } : comparison,
        ),
        options,
      );
      if (narrated && narrative && !options.json && options.format === 'text')
        print(`\n${await narrative.narrativeLines(narrated)}`);
    });
}

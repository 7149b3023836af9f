import type { Command } from 'commander';
import { InferscopeError } from '../model/errors.js';
import type { Session } from '../session/open.js';
import { examples } from './examples.js';
import { print, printDocument, talk, terminalWidth } from './output.js';

interface CompareOptions {
  json?: boolean;
  html?: string;
  ai?: boolean;
}

/** Adds `session compare` to the command `session`. */
export function defineCompare(command: Command): void {
  command
    .command('compare')
    .description('what changed between sessions: by stage, class, kernel, tile and environment')
    .argument('<sessions...>', 'two or more: id or its unique beginning, name, @last, @last~1')
    .option('--html <file>', 'also write it as one page')
    .option('--ai', 'add what a configured model makes of it (docs/analyze.md)')
    .option('--json', 'print one inferscope/compare document')
    .addHelpText(
      'after',
      examples(
        ['inferscope session compare llm-b1 llm-b8', 'the second against the first'],
        ['inferscope session compare b1 b4 b16 --html sweep.html', 'a matrix of three, also as a page'],
      ),
    )
    .action(async (selectors: string[], options: CompareOptions) => {
      const [{ compareSessions }, { openSession }] = await Promise.all([
        import('../analyze/compare/compare.js'),
        import('../session/open.js'),
      ]);
      const { ensureReportPath, writePage } = await import('./report-file.js');
      const narrative = options.ai ? await import('./analyze-narrative.js') : null;
      const settings = await narrative?.comparisonModel();
      if (options.html !== undefined) await ensureReportPath(options.html);
      const sessions: Session[] = [];
      for (const selector of selectors) sessions.push(await openSession(selector));
      const repeated = sessions.find(({ id }, i) => sessions.findIndex((one) => one.id === id) !== i);
      if (repeated) {
        throw new InferscopeError('E_USAGE', {
          what: `session ${repeated.id} was given twice`,
          why: 'A session does not differ from itself.',
          fix: 'inferscope session compare @last~1 @last',
        });
      }
      const found = await compareSessions(sessions);
      if (options.html !== undefined) {
        const { compareReport } = await import('../report/html/compare.js');
        await writePage(options.html, () => compareReport(found));
        talk(`page written: ${options.html}`);
      }
      const told =
        narrative && settings ? await narrative.comparisonNarrative(sessions, found.data, settings) : null;
      if (options.json) {
        printDocument(told ? { ...found, data: { ...found.data, narrative: told } } : found);
        return;
      }
      const { compareSummary } = await import('../report/terminal/compare.js');
      print(compareSummary(found, terminalWidth()));
      if (told && narrative) print(`\n${await narrative.narrativeLines(told)}`);
    });
}

import { resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { InferscopeError } from '../model/errors.js';
import { examples } from './examples.js';
import { print, printDocument, notify } from './output.js';
import { reportPath, writeReport } from './report-file.js';
import { refuseUnused } from './unused-options.js';

const formats = ['html', 'text', 'md'] as const;

interface Options {
  session: string;
  output?: string;
  json?: boolean;
  format: (typeof formats)[number];
}

export function define(command: Command): void {
  command
    .argument('[session]', 'id prefix, name, @last or @last~1')
    .option('--session <selector>', 'same as the argument', '@last')
    .option('--output <file>', 'file to write (default: in the session folder)')
    .option(
      '--json',
      'print the document (inferscope/profile, trace, bench, serving, monitor, …) instead of writing a report',
    )
    .addOption(
      new Option('--format <format>', 'html writes a file; text and md print the report')
        .choices(formats)
        .default('html'),
    )
    .addHelpText(
      'after',
      examples(
        ['inferscope report', 'write the report of the newest session and print its path'],
        ['inferscope report --session llama-b1 --output b1.html', 'write a single file to share'],
      ),
    )
    .action(async (selector: string | undefined, options: Options) => {
      if (options.json)
        refuseUnused(command, ['output', 'format'], {
          why: '--json prints a document instead of writing a report.',
          fix: 'Redirect stdout: inferscope report --json > report.json',
        });
      const { openSession } = await import('../session/open.js');
      const [
        { analyzeSession, documentsOf },
        { analyzeAndExplain },
        { reportText, writeAnalyzedReport: writeAnalyzed },
      ] = await Promise.all([
        import('../facts/session-document.js'),
        import('../advice/explain/session-explanation.js'),
        import('./session-summary.js'),
      ]);
      const session = await openSession(selector ?? options.session);
      const { analyzed, explain } = options.json
        ? { analyzed: await analyzeSession(session), explain: null }
        : await analyzeAndExplain(session);
      const [first] = documentsOf(analyzed);
      if (!first) throw nothingToReport(session.id);
      if (options.json) {
        printDocument(first);
        return;
      }
      if (options.format !== 'html') {
        const text = await reportText(analyzed, explain, options.format);
        if (options.output === undefined) return print(text);
        await writeReport(resolve(options.output), () => `${text}\n`);
        return print(resolve(options.output));
      }
      const path = options.output === undefined ? reportPath(session.folder) : resolve(options.output);
      await writeAnalyzed(analyzed, path, explain);
      notify(`report of ${session.id} written`);
      print(path);
    });
}

function nothingToReport(id: string): InferscopeError {
  return new InferscopeError('E_USAGE', {
    what: `session ${id} has no data for a report`,
    why: 'It has no operators, kernels, counters, GEMMs, benchmark, load test, results or GPU samples.',
    fix: `To see its contents: inferscope session show ${id}`,
  });
}

import { resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { InferscopeError } from '../model/errors.js';
import { examples } from './examples.js';
import { print, printDocument, talk } from './output.js';
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
    .argument('[session]', 'id or its unique beginning, name, @last, @last~1')
    .option('--session <selector>', 'the same', '@last')
    .option('--output <file>', 'write it there; by default into the session folder')
    .option(
      '--json',
      'print the document (inferscope/profile, trace, bench, serving, monitor, …) instead of writing a page',
    )
    .addOption(
      new Option('--format <format>', 'html writes a page; text and md print it, md for a pull request')
        .choices(formats)
        .default('html'),
    )
    .addHelpText(
      'after',
      examples(
        ['inferscope report', 'the report of the newest session; prints its path'],
        ['inferscope report --session llama-b1 --output b1.html', 'one file to send to a colleague'],
      ),
    )
    .action(async (selector: string | undefined, options: Options) => {
      if (options.json)
        refuseUnused(command, ['output', 'format'], {
          why: '--json prints the document instead of a report.',
          fix: 'Redirect it: inferscope report --json > report.json',
        });
      const { openSession } = await import('../session/open.js');
      const [{ analyzeSession, documentsOf }, { analyzeAndExplain }, { reportText, writeAnalysed }] =
        await Promise.all([
          import('../facts/session-document.js'),
          import('../advice/explain/session-explanation.js'),
          import('./session-summary.js'),
        ]);
      const session = await openSession(selector ?? options.session);
      const { analysed, explain } = options.json
        ? { analysed: await analyzeSession(session), explain: null }
        : await analyzeAndExplain(session);
      const [first] = documentsOf(analysed);
      if (!first) throw nothingToReport(session.id);
      if (options.json) {
        printDocument(first);
        return;
      }
      if (options.format !== 'html') {
        const text = await reportText(analysed, explain, options.format);
        if (options.output === undefined) return print(text);
        await writeReport(resolve(options.output), () => `${text}\n`);
        return print(resolve(options.output));
      }
      const path = options.output === undefined ? reportPath(session.folder) : resolve(options.output);
      await writeAnalysed(analysed, path, explain);
      talk(`report of ${session.id} written`);
      print(path);
    });
}

function nothingToReport(id: string): InferscopeError {
  return new InferscopeError('E_USAGE', {
    what: `session ${id} has nothing to report`,
    why: 'It holds no operators, kernels, counters, matrix products, benchmark, load test, results or samples of GPUs.',
    fix: `See what it holds: inferscope session show ${id}`,
  });
}

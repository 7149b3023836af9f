import { resolve } from 'node:path';
import type { Command } from 'commander';
import { examples } from './examples.js';
import { print, printDocument, talk } from './output.js';
import { reportPath, writeReport } from './report-file.js';

export function define(command: Command): void {
  command
    .option('--session <selector>', 'id or its unique beginning, name, @last, @last~1', '@last')
    .option('--output <file>', 'write it there; by default into the session folder')
    .option('--json', 'print the inferscope/profile document instead of writing a page')
    .addHelpText(
      'after',
      examples(
        ['inferscope report', 'the report of the newest session; prints its path'],
        ['inferscope report --session llama-b1 --output b1.html', 'one file to send to a colleague'],
      ),
    )
    .action(async (options: { session: string; output?: string; json?: boolean }) => {
      const { openSession } = await import('../session/open.js');
      const { analyzeProfile } = await import('../analyze/profile.js');
      const session = await openSession(options.session);
      const document = await analyzeProfile(session);
      if (options.json) {
        printDocument(document);
        return;
      }
      const path = options.output === undefined ? reportPath(session.folder) : resolve(options.output);
      await writeReport(document, path);
      talk(`report of ${session.id} written`);
      print(path);
    });
}

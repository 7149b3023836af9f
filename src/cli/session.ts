import type { Command } from 'commander';
import { examples } from './examples.js';
import { warn } from './output.js';
import { type JsonOption, jsonOption, selectorHelp } from './session-command.js';
import { defineCompare } from './session-compare.js';
import { defineDelete } from './session-delete.js';
import { defineExport, defineImport } from './session-export-import.js';
import { defineJoin } from './session-join.js';
import { defineList } from './session-list.js';
import { defineSet } from './session-set.js';
import { defineUserData } from './session-user-data.js';
import { defineUtilization } from './session-utilization.js';
import { defineVerify } from './session-verify.js';

// Each action loads only its part of the store: `session list` needs neither DuckDB nor the archive reader.

export function define(command: Command): void {
  defineList(command);
  defineShow(command);
  defineCompare(command);
  defineJoin(command);
  defineSet(command);
  defineUtilization(command);
  defineUserData(command);
  defineDelete(command);
  defineExport(command);
  defineImport(command);
  defineVerify(command);
  command.addHelpText(
    'after',
    examples(
      ['inferscope session list', 'list all sessions, newest last'],
      ['inferscope session show @last', 'show the newest session'],
    ),
  );
}

function defineShow(command: Command): void {
  command
    .command('show')
    .description('show the contents of a session')
    .argument('[session]', selectorHelp, '@last')
    .option(...jsonOption)
    .addHelpText(
      'after',
      examples(
        ['inferscope session show', 'show the newest session'],
        ['inferscope session show llm-b1 --json | jq .data.manifest.hardware', 'extract one part'],
      ),
    )
    .action(async (selector: string, options: JsonOption) => {
      const { openSession } = await import('../session/open.js');
      const session = await openSession(selector);
      if (session.userIssue) warn(session.userIssue.text);
      const [{ sessionShowDocument }, { sessionShowView }, { showView }] = await Promise.all([
        import('./session-show.js'),
        import('../views/session.js'),
        import('./show-view.js'),
      ]);
      await showView(sessionShowView(sessionShowDocument(session)), {
        format: options.json ? 'json' : 'text',
      });
    });
}

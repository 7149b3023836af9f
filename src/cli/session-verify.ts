import process from 'node:process';
import type { Command } from 'commander';
import type { Issue } from '../model/document.js';
import { exitCodeOf } from '../model/errors.js';
import { homeFolders } from '../session/home.js';
import { examples } from './examples.js';
import { notify } from './output.js';
import { type JsonOption, jsonOption, selectorHelp } from './session-command.js';

/** Adds `session verify` to the command `session`. */
export function defineVerify(command: Command): void {
  command
    .command('verify')
    .description('verify all checksums of sessions')
    .argument('[sessions...]', `${selectorHelp} (default: @last)`)
    .option('--all', 'verify every session')
    .option(...jsonOption)
    .addHelpText(
      'after',
      examples(
        ['inferscope session verify llm-b1', 'verify one session'],
        ['inferscope session verify --all', 'verify all sessions'],
      ),
    )
    .action(async (selectors: string[], options: JsonOption & { all?: boolean }) => {
      const { selectSession } = await import('../session/select.js');
      const { sessionFolders } = await import('../session/folders.js');
      const { verifySession } = await import('../session/verify.js');
      const chosen = options.all
        ? sessionFolders(homeFolders())
        : (selectors.length === 0 ? ['@last'] : selectors).map((selector) => selectSession(selector));
      const sessions = [];
      for (const session of chosen) sessions.push(await verifySession(session));
      const bad = sessions.filter(({ ok }) => !ok);
      const issues = bad.map(({ id, files }): Issue => {
        const count = files.filter(({ state }) => state !== 'ok').length;
        return {
          code: 'E_SESSION_CORRUPT',
          severity: 'error',
          text: `session ${id} is damaged: ${count} of ${files.length} files changed or missing`,
          count,
        };
      });
      const [{ document }, { sessionVerifyView }, { showView }] = await Promise.all([
        import('../model/document.js'),
        import('../views/session.js'),
        import('./show-view.js'),
      ]);
      await showView(sessionVerifyView(document('session-verify', '1.0', { sessions }, issues)), {
        format: options.json ? 'json' : 'text',
      });
      if (bad.length === 0) return;
      for (const { text } of issues) notify(`error: ${text} (E_SESSION_CORRUPT)`);
      notify(
        `  Restore the files from a backup or an export, or type: inferscope session delete ${bad[0]?.id ?? ''}`,
      );
      process.exitCode = exitCodeOf.E_SESSION_CORRUPT;
    });
}

import process from 'node:process';
import { createInterface } from 'node:readline/promises';
import type { Command } from 'commander';
import { shellCommand } from '../model/shell.js';
import { examples } from './examples.js';
import { print } from './output.js';
import {
  type JsonOption,
  jsonOption,
  printSessionDocument,
  selectorHelp,
  sessionUsageError,
} from './session-command.js';

/** Adds `session delete` to the command `session`. */
export function defineDelete(command: Command): void {
  command
    .command('delete')
    .alias('rm')
    .description('delete sessions and all their files')
    .argument('<sessions...>', selectorHelp)
    .option('-y, --yes', 'do not ask for confirmation')
    .option(...jsonOption)
    .addHelpText(
      'after',
      examples(
        ['inferscope session delete llm-b1', 'ask for confirmation, then delete'],
        ['inferscope session delete @last --yes', 'delete without confirmation'],
      ),
    )
    .action(async (selectors: string[], options: JsonOption & { yes?: boolean }) => {
      const { selectSession } = await import('../session/select.js');
      const { deleteSession } = await import('../session/delete.js');
      const chosen = new Map(
        selectors
          .map((selector) => selectSession(selector))
          .map((sessionFolder) => [sessionFolder.id, sessionFolder]),
      );
      const confirmed =
        options.yes || (await confirm(`Delete ${[...chosen.keys()].join(', ')}? [y/N] `, selectors));
      const deleted: string[] = [];
      for (const session of confirmed ? chosen.values() : []) {
        await deleteSession(session);
        deleted.push(session.id);
      }
      if (options.json) await printSessionDocument('session-delete', { deleted });
      else print(deleted.length > 0 ? `deleted ${deleted.join(', ')}` : 'nothing deleted');
    });
}

async function confirm(question: string, selectors: readonly string[]): Promise<boolean> {
  if (!process.stdin.isTTY) {
    throw sessionUsageError(
      'session delete needs --yes',
      'There is no terminal on which it could ask for confirmation.',
      shellCommand(['inferscope', 'session', 'delete', ...selectors, '--yes']),
    );
  }
  const reader = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await reader.question(question)).trim());
  } finally {
    reader.close();
  }
}

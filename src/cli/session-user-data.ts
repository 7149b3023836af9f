import type { Command } from 'commander';
import { type UserData, userVersion } from '../model/manifest.js';
import type { SessionFolder } from '../session/folders.js';
import { plural } from '../vocabulary/format.js';
import { examples } from './examples.js';
import { print } from './output.js';
import {
  type JsonOption,
  jsonOption,
  printSessionDocument,
  selectorHelp,
  sessionUsageError,
} from './session-command.js';

/** Adds `session rename`, `session tag` and `session note`, which change user.json, to the command `session`. */
export function defineUserData(command: Command): void {
  defineRename(command);
  defineTag(command);
  defineNote(command);
}

function defineRename(command: Command): void {
  command
    .command('rename')
    .description('name a session, or remove its name')
    .argument('<session>', selectorHelp)
    .argument('[name]', 'the new name')
    .option('--clear', 'remove the name')
    .option(...jsonOption)
    .addHelpText(
      'after',
      examples(
        ['inferscope session rename @last llm-b1', 'name the newest session'],
        ['inferscope session rename llm-b1 --clear', 'remove the name'],
      ),
    )
    .action(async (selector: string, name: string | undefined, options: JsonOption & { clear?: boolean }) => {
      if ((name === undefined) === !options.clear) {
        throw sessionUsageError(
          `session rename needs a name or --clear${name === undefined ? '' : ', not both'}`,
          'A session has at most one name.',
          'inferscope session rename @last llm-b1',
        );
      }
      const { renameSession } = await import('../session/edit.js');
      await editUserData(selector, options, (session) => renameSession(session, name ?? null));
    });
}

function defineTag(command: Command): void {
  command
    .command('tag')
    .description('add tags to a session, or remove them')
    .argument('<session>', selectorHelp)
    .argument('<tags...>', 'tags')
    .option('--remove', 'remove these tags instead')
    .option(...jsonOption)
    .addHelpText(
      'after',
      examples(
        ['inferscope session tag @last baseline h100', 'add two tags'],
        ['inferscope session tag llm-b1 baseline --remove', 'remove one'],
      ),
    )
    .action(async (selector: string, tags: string[], options: JsonOption & { remove?: boolean }) => {
      const { tagSession } = await import('../session/edit.js');
      const change = options.remove ? { add: [], remove: tags } : { add: tags, remove: [] };
      await editUserData(selector, options, (session) => tagSession(session, change));
    });
}

function defineNote(command: Command): void {
  command
    .command('note')
    .description('add a note to a session')
    .argument('<session>', selectorHelp)
    .argument('<text...>', 'the note')
    .option(...jsonOption)
    .addHelpText(
      'after',
      examples(
        ['inferscope session note @last "fans at full speed"', 'add a note'],
        ['inferscope session note llm-b1 driver 550, idle machine', 'quotes are optional'],
      ),
    )
    .action(async (selector: string, text: string[], options: JsonOption) => {
      const { noteSession } = await import('../session/edit.js');
      await editUserData(selector, options, (session) => noteSession(session, text.join(' ')));
    });
}

type Edit = (session: SessionFolder) => Promise<UserData>;

async function editUserData(selector: string, options: JsonOption, edit: Edit): Promise<void> {
  const { selectSession } = await import('../session/select.js');
  const session = selectSession(selector);
  const user = await edit(session);
  if (options.json) {
    await printSessionDocument('session-user', { id: session.id, user }, [], userVersion);
    return;
  }
  const tags = user.tags.length > 0 ? `, tags ${user.tags.join(', ')}` : '';
  const notes = user.notes.length > 0 ? `, ${plural(user.notes.length, 'note')}` : '';
  print(`${session.id}: ${user.name ? `name ${user.name}` : 'no name'}${tags}${notes}`);
}

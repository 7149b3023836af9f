import process from 'node:process';
import { createInterface } from 'node:readline/promises';
import type { Command } from 'commander';
import type { Issue } from '../model/document.js';
import { exitCodeOf, InferscopeError } from '../model/errors.js';
import type { UserData } from '../model/manifest.js';
import { shellWord } from '../model/shell.js';
import type { SessionFolder } from '../session/folders.js';
import { homeFolders } from '../session/home.js';
import { examples } from './examples.js';
import { plural } from '../vocabulary/format.js';
import { print, printDocument, notify, terminalWidth, warn } from './output.js';
import { defineCompare } from './session-compare.js';
import { defineJoin } from './session-join.js';
import { defineSet } from './session-set.js';
import { defineUtilization } from './session-utilization.js';

// Each action loads only its part of the store: `session list` needs neither DuckDB nor the archive reader.

interface JsonOption {
  json?: boolean;
}

const jsonOption = ['--json', 'print one JSON document on stdout'] as const;
const selectorHelp = 'id prefix, name, @last or @last~1';

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

/** Loads zod only for JSON output. */
async function printSessionDocument(
  name: string,
  data: unknown,
  issues: Issue[] = [],
  version = '1.0',
): Promise<void> {
  const { document } = await import('../model/document.js');
  printDocument(document(name, version, data, issues));
}

function defineList(command: Command): void {
  command
    .command('list')
    .alias('ls')
    .description('list saved sessions, newest last')
    .option('--tag <tag>', 'only sessions with this tag')
    .option(
      '--kind <kind>',
      'only sessions created by this command (e.g. run) or with this content (e.g. load)',
    )
    .option('--limit <n>', 'only the n newest', parseLimit)
    .option(...jsonOption)
    .addHelpText(
      'after',
      examples(
        ['inferscope session list --limit 10', 'list the ten newest'],
        ['inferscope session list --tag baseline --json', 'list sessions with tag baseline as JSON'],
      ),
    )
    .action(async (options: JsonOption & { tag?: string; kind?: string; limit?: number }) => {
      const [{ listSessions }, { waitingJobs }] = await Promise.all([
        import('../session/list.js'),
        import('../record/ranks/job-folder.js'),
      ]);
      const home = homeFolders();
      const { tag, kind, limit } = options;
      const listed = listSessions(home)
        .filter((session) => tag === undefined || session.tags.includes(tag))
        .filter(
          ({ kind: verb, subjects }) =>
            kind === undefined || verb === kind || subjects?.some((subject) => subject === kind),
        );
      const sessions = limit === undefined ? listed : listed.slice(-limit);
      if (options.json) {
        await printSessionDocument(
          'session-list',
          { home: home.root, sessions, jobs: waitingJobs(home) },
          [],
          '1.2',
        );
        return;
      }
      const [{ sessionListBlocks }, { terminalBlocks }] = await Promise.all([
        import('../views/session.js'),
        import('../render/terminal/view.js'),
      ]);
      if (sessions.length > 0) print(terminalBlocks(sessionListBlocks(sessions), terminalWidth()));
      else if (tag === undefined && kind === undefined)
        notify(`no session in ${home.sessions}; inferscope profile makes one`);
      else notify(`no session in ${home.sessions} with this tag or kind`);
      const unanalyzed = sessions.filter(({ headline_why }) => headline_why === 'not_analyzed');
      if (unanalyzed.length > 0)
        notify(
          `${unanalyzed.length} without headline (not analyzed on this machine): inferscope explain ${unanalyzed.at(-1)!.id}`,
        );
      for (const { folder, recorded, unfinished } of waitingJobs(home))
        notify(
          `a job waits for ranks: ${recorded.length} recorded, ${unfinished.length} not ended; to join those recorded: inferscope session join ${shellWord(folder)}`,
        );
    });
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

/** rename, tag, note: the content of user.json. */
function defineUserData(command: Command): void {
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
        throw usage(
          `session rename needs a name or --clear${name === undefined ? '' : ', not both'}`,
          'inferscope session rename @last llm-b1',
        );
      }
      const { renameSession } = await import('../session/edit.js');
      await editUserData(selector, options, (session) => renameSession(session, name ?? null));
    });
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
    await printSessionDocument('session-user', { id: session.id, user }, [], '1.1');
    return;
  }
  const tags = user.tags.length > 0 ? `, tags ${user.tags.join(', ')}` : '';
  const notes = user.notes.length > 0 ? `, ${plural(user.notes.length, 'note')}` : '';
  print(`${session.id}: ${user.name ? `name ${user.name}` : 'no name'}${tags}${notes}`);
}

function defineDelete(command: Command): void {
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
      const confirmed = options.yes || (await confirm(`Delete ${[...chosen.keys()].join(', ')}? [y/N] `));
      const deleted: string[] = [];
      for (const session of confirmed ? chosen.values() : []) {
        await deleteSession(session);
        deleted.push(session.id);
      }
      if (options.json) await printSessionDocument('session-delete', { deleted });
      else print(deleted.length > 0 ? `deleted ${deleted.join(', ')}` : 'nothing deleted');
    });
}

async function confirm(question: string): Promise<boolean> {
  if (!process.stdin.isTTY) {
    throw usage(
      'session delete asks for confirmation, and there is no terminal',
      'inferscope session delete … --yes',
    );
  }
  const reader = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await reader.question(question)).trim());
  } finally {
    reader.close();
  }
}

function defineExport(command: Command): void {
  command
    .command('export')
    .description('export a session to one file')
    .argument('[session]', selectorHelp, '@last')
    .option('-o, --output <file>', 'file to write (default: <id>.inferscope.tar.gz)')
    .option('--derived', 'include reports and caches')
    .option(
      '--raw',
      "include the profilers' raw files, which may contain the program's environment variables",
    )
    .option('--overwrite', 'replace an existing file')
    .option(...jsonOption)
    .addHelpText(
      'after',
      examples(
        ['inferscope session export llm-b1', 'write to the current folder'],
        ['inferscope session export @last -o /media/stick/run.tar.gz --derived', 'include its reports'],
      ),
    )
    .action(
      async (
        selector: string,
        options: JsonOption & { output?: string; derived?: boolean; raw?: boolean; overwrite?: boolean },
      ) => {
        const { selectSession } = await import('../session/select.js');
        const { exportSession } = await import('../session/archive-export.js');
        const { formatBytes } = await import('../vocabulary/format.js');
        const session = selectSession(selector);
        const { json, ...exportOptions } = options;
        const archive = await exportSession(session, exportOptions);
        const reports = archive.raw_reports;
        if (reports.length > 0 && options.raw) {
          warn(
            `${reports.join(', ')} may contain all environment variables of the profiled program, including tokens: ` +
              'check before you share the archive',
          );
        } else if (reports.length > 0) {
          notify(
            `left out: ${reports.join(', ')} (raw files of profilers may contain the program's environment; --raw includes them)`,
          );
        }
        if (json) await printSessionDocument('session-export', { id: session.id, ...archive });
        else print(`${archive.path}  (${formatBytes(archive.bytes)}, ${archive.files} files)`);
      },
    );
}

function defineImport(command: Command): void {
  command
    .command('import')
    .description('import an exported session')
    .argument('<file>', 'file written by session export')
    .option(...jsonOption)
    .addHelpText(
      'after',
      examples(
        ['inferscope session import 20261120-221503-llama-24m.inferscope.tar.gz', 'verify and import it'],
        ['inferscope session import run.tar.gz --json', 'print JSON'],
      ),
    )
    .action(async (file: string, options: JsonOption) => {
      const { importArchive } = await import('./session-archive.js');
      const { id, outcome, droppedName } = await importArchive(file);
      if (options.json) {
        await printSessionDocument('session-import', { id, outcome, dropped_name: droppedName });
      } else {
        print(
          outcome === 'imported'
            ? `imported ${id}`
            : `${id} already exists with the same content: nothing changed`,
        );
      }
    });
}

function defineVerify(command: Command): void {
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

function parseLimit(text: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && value > 0) return value;
  throw usage(`--limit takes a number of sessions, not "${text}"`, 'inferscope session list --limit 10');
}

function usage(what: string, fix: string): InferscopeError {
  return new InferscopeError('E_USAGE', { what, why: 'inferscope session --help shows each command.', fix });
}

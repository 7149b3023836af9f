import type { Command } from 'commander';
import { shellWord } from '../model/shell.js';
import { homeFolders } from '../session/home.js';
import { joinWithAnd } from '../vocabulary/sentence.js';
import { examples } from './examples.js';
import { wholeNumberParser } from './numbers.js';
import { notify, print, terminalWidth } from './output.js';
import { type JsonOption, jsonOption, printSessionDocument } from './session-command.js';

/** Adds `session list` to the command `session`. */
export function defineList(command: Command): void {
  command
    .command('list')
    .alias('ls')
    .description('list saved sessions, newest last')
    .option('--tag <tag>', 'only sessions with this tag')
    .option(
      '--kind <kind>',
      'only sessions created by this command (e.g. run) or with this content (e.g. load)',
    )
    .option('--limit <n>', 'only the n newest', wholeNumberParser('--limit', { min: 1, example: 10 }))
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
      const saved = listSessions(home);
      const listed = saved
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
      else
        notify(
          `no session in ${home.sessions} has ${joinWithAnd([
            ...(tag === undefined
              ? []
              : [`the tag ${tag} (there: ${listOf(saved.flatMap(({ tags }) => tags))})`]),
            ...(kind === undefined
              ? []
              : [
                  `the kind ${kind} (there: ${listOf(saved.flatMap(({ kind: verb, subjects }) => [...(verb === null ? [] : [verb]), ...(subjects ?? [])]))})`,
                ]),
          ])}`,
        );
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

/** Each once, in order of the alphabet. */
const listOf = (names: readonly string[]): string => [...new Set(names)].toSorted().join(', ') || 'none';

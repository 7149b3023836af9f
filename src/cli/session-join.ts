import { type Command, Option } from 'commander';
import { type ContextOptions, defineContextOptions, saveContext, readContext } from './context-options.js';
import { examples } from './examples.js';

interface JoinOptions extends ContextOptions {
  name?: string;
  tag: string[];
  analyze: boolean;
  json?: boolean;
  quiet?: boolean;
}

/** Adds `session join` to the command `session`. */
export function defineJoin(command: Command): void {
  const join = command
    .command('join')
    .description(
      'join the ranks of a job into one session, if a lost rank prevented that at the end of the job',
    )
    .argument(
      '<folder>',
      "folder of the job, which rank 0 printed: jobs/NAME in inferscope's home, or a copy",
    )
    .option('--name <name>', 'name the session')
    .addOption(new Option('--tag <tag...>', 'tag the session').default([], 'none'))
    .option('--no-analyze', 'join only; no summary, no report')
    .option('--json', 'print one document')
    .option('--quiet', 'no progress on stderr');
  defineContextOptions(join)
    .addHelpText(
      'after',
      examples(
        [
          'inferscope session join ~/.local/share/inferscope/jobs/4711-0',
          'join what the ranks of step 0 of job 4711 recorded',
        ],
        ['inferscope session join ./4711-0 --name job --json', 'join a copy of the folder, print JSON'],
      ),
    )
    .action(async (folder: string, options: JoinOptions) => {
      const context = await readContext(options);
      const [{ joinJob }, { showSession }] = await Promise.all([
        import('./ranks/join-job.js'),
        import('./session-summary.js'),
      ]);
      const { id } = await joinJob(folder, { name: options.name, tags: options.tag });
      await saveContext(id, context);
      await showSession(id, options);
    });
}

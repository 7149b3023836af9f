import { Argument, Command, Option } from 'commander';
import { examples } from './examples.js';
import { print } from './output.js';

/** An entry of `commands`: a command before its module is loaded. */
export interface LoadableCommand {
  name: string;
  alias?: string;
  summary: string;
  load: () => Promise<{ define: (command: Command) => void }>;
}

const scriptWriters = {
  bash: async () => (await import('./completion-bash.js')).bashScript,
  zsh: async () => (await import('./completion-zsh.js')).zshScript,
  fish: async () => (await import('./completion-fish.js')).fishScript,
} as const;

/** @param commands all commands, including this one: the script is generated from their definitions */
export function defineCompletion(commands: readonly LoadableCommand[]): (command: Command) => void {
  return (command) => {
    command
      .addArgument(
        new Argument('<shell>', 'shell to print the script for')
          .choices(Object.keys(scriptWriters))
          .argOptional(),
      )
      .addOption(
        new Option('--sessions', 'print the sessions, newest first (called by the script)').hideHelp(),
      )
      .addHelpText(
        'after',
        `\nAdd the line to ~/.bashrc or ~/.zshrc; for fish:\n  inferscope completion fish > ~/.config/fish/completions/inferscope.fish\n` +
          examples(
            ['source <(inferscope completion bash)', 'add to ~/.bashrc'],
            ['source <(inferscope completion zsh)', 'add to ~/.zshrc, after compinit'],
          ),
      )
      .action(async (shell: keyof typeof scriptWriters | undefined, options: { sessions?: boolean }) => {
        if (options.sessions) return print(await sessionLines());
        if (shell === undefined) {
          const { InferscopeError } = await import('../model/errors.js');
          throw new InferscopeError('E_USAGE', {
            what: 'completion needs the name of a shell',
            why: `It is one of: ${Object.keys(scriptWriters).join(', ')}.`,
            fix: 'source <(inferscope completion bash)',
          });
        }
        const { completionTree } = await import('./completion-tree.js');
        const script = await scriptWriters[shell]();
        print(script(completionTree(await wholeProgram(commands))).trimEnd());
      });
  };
}

async function wholeProgram(commands: readonly LoadableCommand[]): Promise<Command> {
  const program = new Command('inferscope').version('0', '-V, --version').enablePositionalOptions();
  for (const { name, alias, summary, load } of commands) {
    const command = program.command(name).summary(summary);
    if (alias) command.alias(alias);
    (await load()).define(command);
  }
  return program;
}

/** `value<tab>description`: names first, then ids. Reads no manifest, to stay fast at each keystroke. */
async function sessionLines(): Promise<string> {
  const { homeFolders } = await import('../session/home.js');
  const { sessionFolders } = await import('../session/folders.js');
  const { readUser } = await import('../session/user-file.js');
  const sessions = sessionFolders(homeFolders()).toReversed();
  const sessionNames = sessions.map(({ id, folder }) => ({ id, name: readUser(folder).user.name }));
  const lines = sessions.length > 0 ? [`@last\t${sessions[0]!.id}`] : [];
  for (const { id, name } of sessionNames)
    if (name !== null && !/[\s\p{C}]/u.test(name)) lines.push(`${name}\t${id}`);
  for (const { id, name } of sessionNames)
    lines.push(`${id}\t${name?.replaceAll(/[\s\p{C}]/gu, ' ') ?? 'session'}`);
  return lines.join('\n');
}

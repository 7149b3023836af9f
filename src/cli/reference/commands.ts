import { Command } from 'commander';
import { commands } from '../commands.js';
import { type Page, page } from './markdown.js';

/** Every command with its --help text, parents first. */
export async function commandsPage(): Promise<Page> {
  const program = new Command('inferscope').enablePositionalOptions();
  for (const { name, alias, summary, load } of commands) {
    const command = program.command(name).summary(summary).description(summary);
    if (alias) command.alias(alias);
    (await load()).define(command);
  }
  const all = program.commands.flatMap((command) => withChildren(command, 'inferscope'));
  return page(
    'commands.md',
    'Commands',
    'Output of `inferscope <command> --help`. `--json` prints one [document](documents.md); exit codes are in [errors](errors.md).',
    all
      .map(
        ({ path, command }) => `- [${path}](#${anchor(path)}): ${command.summary() || command.description()}`,
      )
      .join('\n'),
    ...all.map(({ path, command }) => `## ${path}\n\n\`\`\`text\n${helpOf(command)}\n\`\`\``),
  );
}

const anchor = (path: string): string => path.replaceAll(' ', '-');

function withChildren(command: Command, parent: string): { path: string; command: Command }[] {
  const path = `${parent} ${command.name()}`;
  const visible = command.createHelp().visibleCommands(command);
  const children = visible.filter((child) => command.commands.includes(child));
  return [{ path, command }, ...children.flatMap((child) => withChildren(child, path))];
}

function helpOf(command: Command): string {
  let text = '';
  command.configureOutput({ writeOut: (part) => (text += part), getOutHelpWidth: () => 100 }).outputHelp();
  return text.trim();
}

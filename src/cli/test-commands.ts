import { Command } from 'commander';
import { commands } from './commands.js';

/** Commands by their typed words: `session show`, `session ls`. */
export async function definedCommands(): Promise<Map<string, Command>> {
  const commandsByPath = new Map<string, Command>();
  const add = (path: string, command: Command) => {
    commandsByPath.set(path, command);
    for (const child of command.commands)
      for (const name of [child.name(), ...child.aliases()]) add(`${path} ${name}`, child);
  };
  const program = new Command('inferscope').enablePositionalOptions();
  for (const { name, alias, summary, load } of commands) {
    const command = program.command(name).description(summary);
    (await load()).define(command);
    for (const word of alias ? [name, alias] : [name]) add(word, command);
  }
  return commandsByPath;
}

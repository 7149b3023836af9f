import type { ManifestData } from '../model/manifest.js';
import { shellCommand } from '../model/shell.js';

/** A suggested `inferscope run`, started as the one that recorded the session was: by the launcher of its job. */
export function belowLauncher(command: string, { command: typed }: Pick<ManifestData, 'command'>): string {
  const at = typed.indexOf('inferscope');
  const [, verb] = command.split(' ');
  return at > 0 && verb === 'run' ? `${shellCommand(typed.slice(0, at))} ${command}` : command;
}

/**
 * The program of the session in place of <command>, where it is known: what follows the first `--` of our own command, as a launcher
 * before it may have one of its own.
 */
export function withProgram(command: string, { command: typed }: Pick<ManifestData, 'command'>): string {
  const own = typed.slice(Math.max(0, typed.indexOf('inferscope')));
  const at = own.indexOf('--');
  const program = at === -1 ? [] : own.slice(at + 1);
  return program.length === 0 ? command : command.replace('<command>', () => shellCommand(program));
}

import type { ManifestData } from '../model/manifest.js';
import { shellCommand } from '../model/shell.js';

/** A suggested `inferscope run` with the launcher of the job that recorded the session. */
export function belowLauncher(command: string, { command: typed }: Pick<ManifestData, 'command'>): string {
  const index = typed.indexOf('inferscope');
  const [, verb] = command.split(' ');
  return index > 0 && verb === 'run' ? `${shellCommand(typed.slice(0, index))} ${command}` : command;
}

/**
 * Replaces <command> with the session's program, if known: the words after the first `--` of the inferscope command,
 * because a launcher before it may have its own `--`.
 */
export function withProgram(command: string, { command: typed }: Pick<ManifestData, 'command'>): string {
  const inferscopeWords = typed.slice(Math.max(0, typed.indexOf('inferscope')));
  const index = inferscopeWords.indexOf('--');
  const program = index === -1 ? [] : inferscopeWords.slice(index + 1);
  return program.length === 0 ? command : command.replace('<command>', () => shellCommand(program));
}

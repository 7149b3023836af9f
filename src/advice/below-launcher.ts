import type { ManifestData } from '../model/manifest.js';
import { shellCommand } from '../model/shell.js';

/** A suggested `inferscope run` with the launcher of the job that recorded the session. */
export function belowLauncher(command: string, { command: recorded }: Pick<ManifestData, 'command'>): string {
  const index = recorded.indexOf('inferscope');
  const [, verb] = command.split(' ');
  return index > 0 && verb === 'run' ? `${shellCommand(recorded.slice(0, index))} ${command}` : command;
}

/**
 * Replaces <command> with the session's program, if known: the words after the first `--` of the inferscope command,
 * because a launcher before it may have its own `--`.
 */
export function withProgram(command: string, { command: recorded }: Pick<ManifestData, 'command'>): string {
  const inferscopeWords = recorded.slice(Math.max(0, recorded.indexOf('inferscope')));
  const index = inferscopeWords.indexOf('--');
  const program = index === -1 ? [] : inferscopeWords.slice(index + 1);
  return program.length === 0 ? command : command.replace('<command>', () => shellCommand(program));
}

import type { ManifestData } from '../model/manifest.js';
import { shellCommand } from '../model/shell.js';

/** A suggested `inferscope run`, started as the one that recorded the session was: by the launcher of its job. */
export function belowLauncher(command: string, { command: typed }: Pick<ManifestData, 'command'>): string {
  const at = typed.indexOf('inferscope');
  const [, verb] = command.split(' ');
  return at > 0 && verb === 'run' ? `${shellCommand(typed.slice(0, at))} ${command}` : command;
}

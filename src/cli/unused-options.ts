import type { Command } from 'commander';
import { InferscopeError } from '../model/errors.js';

/**
 * Rejects typed options that the command ignores: silence would suggest that they had an effect.
 * @param names their attributes, as in the parsed options
 * @throws E_USAGE
 */
export function refuseUnused(
  command: Command,
  names: readonly string[],
  { why, fix }: { why: string; fix: string },
): void {
  const usedFlags = command.options
    .filter((option) => names.includes(option.attributeName()))
    .filter((option) => command.getOptionValueSource(option.attributeName()) === 'cli')
    .map(({ long }) => long);
  if (usedFlags.length === 0) return;
  throw new InferscopeError('E_USAGE', { what: `${usedFlags.join(', ')} has no effect here`, why, fix });
}

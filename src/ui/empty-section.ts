import type { Section } from '../views/block.js';

/** A page without data: the reason, and the commands that record it. */
export const emptySection = (
  id: string,
  title: string,
  what: string,
  why: string,
  ...commands: [command: string, why: string][]
): Section => ({
  id,
  title,
  blocks: [
    { type: 'missing', what, why },
    { type: 'commands', items: commands.map(([command, reason]) => ({ command, why: reason })) },
  ],
});

import { InferscopeError } from './errors.js';

/** Combinations of one command; more are more than finish, and than fit in memory as a list. */
const maxCombinations = 10_000;

/**
 * Refuses a grid before it is expanded: dry runs and plans hold every combination.
 * @param sizes number of values by axis, as it is typed
 * @param of plural of what a combination is: runs, cases, points
 * @throws E_USAGE with the count
 */
export function checkGrid(
  sizes: Readonly<Record<string, number>>,
  of: string,
  most: number = maxCombinations,
): void {
  const count = Object.values(sizes).reduce((product, size) => product * size, 1);
  if (count <= most) return;
  const axes = Object.entries(sizes).filter(([, size]) => size > 1);
  const [longest] = axes.toSorted(([, a], [, b]) => b - a)[0]!;
  throw new InferscopeError('E_USAGE', {
    what: `the grid has ${count} ${of}`,
    why: `${axes.map(([name, size]) => `${name}: ${size} values`).join(', ')}. The limit is ${most} ${of} per command.`,
    fix: `Give ${longest} fewer values, or run parts of the grid one after another.`,
  });
}

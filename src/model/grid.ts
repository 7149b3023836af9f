import { InferscopeError } from './errors.js';

/** Maximum combinations of one command; more would neither finish nor fit in memory as a list. */
const maxCombinations = 10_000;

/**
 * Rejects a grid before it is expanded, since dry runs and plans contain every combination.
 * @param sizes number of values by axis, as typed
 * @param noun plural noun for combinations: runs, cases, points
 * @throws E_USAGE with the count
 */
export function checkGrid(
  sizes: Readonly<Record<string, number>>,
  noun: string,
  max: number = maxCombinations,
): void {
  const count = Object.values(sizes).reduce((product, size) => product * size, 1);
  if (count <= max) return;
  const axes = Object.entries(sizes).filter(([, size]) => size > 1);
  const [longest] = axes.toSorted(([, a], [, b]) => b - a)[0]!;
  throw new InferscopeError('E_USAGE', {
    what: `the grid has ${count} ${noun}`,
    why: `${axes.map(([name, size]) => `${name}: ${size} values`).join(', ')}. The limit is ${max} ${noun} per command.`,
    fix: `Give ${longest} fewer values, or run parts of the grid one after another.`,
  });
}

import { InferscopeError } from '../model/errors.js';
import { checkGrid } from '../model/grid.js';

interface Variant {
  execution_id: string;
  /** `defaults`, or the engine arguments that differ, e.g. mode=cudagraph. */
  label: string;
  engine_args: Record<string, string>;
}

/** Upper limit on variants; more is probably a typing mistake. */
const maxVariants = 64;

/**
 * `--engine-arg mode=eager,cudagraph --engine-arg threads=1,2`: one variant per combination of values, labeled by
 * what differs. A value in JSON brackets is one value, with its commas.
 * @throws E_USAGE for an argument without `=`, a key typed twice, an empty value
 */
export function expandVariants(texts: readonly string[]): Variant[] {
  const keys = new Map<string, string[]>();
  for (const text of texts) {
    const index = text.indexOf('=');
    const key = text.slice(0, index).trim();
    const values = index > 0 ? valuesOf(text.slice(index + 1)) : [];
    if (key === '' || values.length === 0 || values.includes('')) {
      throw new InferscopeError('E_USAGE', {
        what: `--engine-arg ${text} cannot be read`,
        why: 'An engine argument is key=value, or key=a,b for one variant per value.',
        fix: 'Type for example: --engine-arg mode=eager,cudagraph',
      });
    }
    if (keys.has(key)) {
      throw new InferscopeError('E_USAGE', {
        what: `--engine-arg ${key} was given twice`,
        why: 'It is unclear which value to use.',
        fix: `To compare both values, type: --engine-arg ${key}=${[...keys.get(key)!, ...values].join(',')}`,
      });
    }
    keys.set(key, [...new Set(values)]);
  }
  checkGrid(Object.fromEntries([...keys].map(([key, { length }]) => [key, length])), 'variants', maxVariants);
  let grid: Record<string, string>[] = [{}];
  for (const [key, values] of keys)
    grid = grid.flatMap((args) => values.map((value) => ({ ...args, [key]: value })));
  const swept = [...keys].filter(([, values]) => values.length > 1).map(([key]) => key);
  const labelKeys = swept.length > 0 ? swept : [...keys.keys()];
  return grid.map((engine_args, index) => ({
    execution_id: `bench-${index + 1}`,
    label: labelKeys.map((key) => `${key}=${engine_args[key]}`).join(' ') || 'defaults',
    engine_args,
  }));
}

function valuesOf(text: string): string[] {
  if (/^\s*[[{]/.test(text)) return [text.trim()];
  return text.split(',').map((value) => value.trim());
}

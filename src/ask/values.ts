import { type Dimension, type Unit, unitOfFigure, unitOfKey } from './units.js';
import { numbersIn } from './written-numbers.js';
import type { KnownValue } from './value-index.js';

interface ValuesOptions {
  /** Whether numbers inside texts count: they do in sentences of inferscope, not in names of kernels and files. */
  texts?: boolean;
  /** The unit of a key; null if unknown. */
  unitOf?: (key: string) => Unit | null;
  /** Texts chosen by programs and files (names): numbers in them are not our figures. */
  names?: readonly string[];
  /** Whether a number does not count: a constant of the query itself. */
  isExcluded?: (value: number) => boolean;
}

/** A text that is only a number: DuckDB's 128-bit integers and decimals arrive as such. */
const numeric = /^[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?$/i;

/**
 * Every number of a tool's result, in base units: numbers with the unit of their key or figure, those in texts with the unit written after them
 * (without one they are plain), and lengths of lists.
 */
export function valuesOf(
  answer: unknown,
  query: string,
  { texts = true, unitOf = unitOfKey, names = [], isExcluded = () => false }: ValuesOptions = {},
): KnownValue[] {
  const known: KnownValue[] = [];
  const add = (value: number, unit: Unit | null, dimension: Dimension = 'unknown') => {
    if (Number.isFinite(value) && !isExcluded(value))
      known.push({ value: value * (unit?.scale ?? 1), dimension: unit?.dimension ?? dimension, query });
  };
  const walk = (item: unknown, key: string): void => {
    if (typeof item === 'number') add(item, unitOf(key));
    else if (typeof item === 'string') {
      if (numeric.test(item)) add(Number(item), unitOf(key));
      else if (texts)
        for (const { value, unit } of numbersIn(withoutNames(item, names))) add(value, unit, 'plain');
    } else if (Array.isArray(item)) {
      for (const element of item) walk(element, key);
      add(item.length, { dimension: 'plain', scale: 1 });
    } else if (item !== null && typeof item === 'object') {
      const { value, unit } = item as { value?: unknown; unit?: unknown };
      if (typeof unit === 'string' && typeof value === 'number') {
        const figureUnit = unitOfFigure(unit);
        const { ci95, sd, n } = item as { ci95?: unknown; sd?: unknown; n?: unknown };
        for (const number of [value, sd, ...(Array.isArray(ci95) ? ci95 : [])])
          if (typeof number === 'number') add(number, figureUnit);
        if (typeof n === 'number') add(n, { dimension: 'plain', scale: 1 });
        return;
      }
      for (const [name, member] of Object.entries(item)) walk(member, name);
    }
  };
  walk(answer, '');
  return known;
}

const withoutNames = (text: string, names: readonly string[]): string =>
  names.reduce((remaining, name) => remaining.replaceAll(name, ' '), text);

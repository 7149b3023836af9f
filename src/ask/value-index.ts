import type { Dimension } from './units.js';

/** A number that a tool returned, in the base unit of its dimension (`Unit.scale`). */
export interface KnownValue {
  value: number;
  dimension: Dimension;
  query: string;
}

/** Magnitudes of one query and dimension, ascending, without duplicates. */
interface Magnitudes {
  query: string;
  list: readonly number[];
}

interface QueryValues {
  values: KnownValue[];
  sorted: Map<Dimension, number[]> | null;
}

/** Known values by query and dimension, so that a lookup does not read all of them. */
export class ValueIndex {
  readonly #byQuery = new Map<string, QueryValues>();

  constructor(values: readonly KnownValue[] = []) {
    this.add(values);
  }

  add(values: readonly KnownValue[]): void {
    for (const value of values) {
      const queryValues = this.#byQuery.get(value.query) ?? { values: [], sorted: null };
      queryValues.values.push(value);
      queryValues.sorted = null;
      this.#byQuery.set(value.query, queryValues);
    }
  }

  get queries(): string[] {
    return [...this.#byQuery.keys()];
  }

  valuesOf(queries: readonly string[]): KnownValue[] {
    return queries.flatMap((query) => this.#byQuery.get(query)?.values ?? []);
  }

  magnitudes(queries: readonly string[], dimensions: readonly Dimension[]): Magnitudes[] {
    return queries.flatMap((query) => {
      const queryValues = this.#byQuery.get(query);
      if (!queryValues) return [];
      queryValues.sorted ??= sortedByDimension(queryValues.values);
      const { sorted } = queryValues;
      return dimensions.flatMap((dimension) => {
        const list = sorted.get(dimension);
        return list ? [{ query, list }] : [];
      });
    });
  }
}

function sortedByDimension(values: readonly KnownValue[]): Map<Dimension, number[]> {
  const sets = new Map<Dimension, Set<number>>();
  for (const { dimension, value } of values)
    sets.set(dimension, (sets.get(dimension) ?? new Set()).add(Math.abs(value)));
  return new Map(
    [...sets].map(([dimension, magnitudes]) => [dimension, [...magnitudes].sort((a, b) => a - b)]),
  );
}

/** Index of the first element of an ascending list that is not below the value; the list's length if all are. */
export function firstFrom(list: readonly number[], value: number): number {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle]! < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

export function anyWithin(list: readonly number[], low: number, high: number): boolean {
  const found = list[firstFrom(list, low)];
  return found !== undefined && found <= high;
}

/** Number of different multiples of `step` that the elements from low to high round to; counting stops above `limit`. */
export function countSteps(
  lists: readonly (readonly number[])[],
  [low, high]: readonly [number, number],
  step: number,
  limit: number,
): number {
  const steps = new Set<number>();
  for (const list of lists) {
    let index = firstFrom(list, low);
    while (index < list.length && list[index]! <= high && steps.size <= limit) {
      const nearestStep = Math.round(list[index]! / step);
      steps.add(nearestStep);
      index = Math.max(index + 1, firstFrom(list, (nearestStep + 0.5) * step));
    }
  }
  return steps.size;
}

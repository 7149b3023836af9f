import type { CodeSource, InMemoryColumn, NumberSource } from '../../../model/workbench.js';

// Loops over typed arrays: one function call per value would cost more than the rest.

export function directColumn(values: Float64Array): InMemoryColumn {
  return { source: { numbers: (from, count) => values.subarray(from, from + count) } };
}

/** `values` by an index per row; −1 is null. */
export function gatheredColumn(index: Int32Array, values: Float64Array): InMemoryColumn {
  const scratch = reusableFloats();
  return {
    source: {
      numbers(from, count) {
        const into = scratch(count);
        for (let i = 0; i < count; i++) {
          const source = index[from + i]!;
          into[i] = source < 0 ? Number.NaN : values[source]!;
        }
        return into;
      },
    },
  };
}

export function computedColumn(value: (row: number) => number): InMemoryColumn {
  const scratch = reusableFloats();
  return {
    source: {
      numbers(from, count) {
        const into = scratch(count);
        for (let i = 0; i < count; i++) into[i] = value(from + i);
        return into;
      },
    },
  };
}

/** A text column with few distinct values: `code` is an index into them, negative for null. */
export function textColumn(texts: readonly string[], code: (row: number) => number): InMemoryColumn {
  const scratch = reusableInts();
  return {
    source: {
      codes(from, count) {
        const into = scratch(count);
        for (let i = 0; i < count; i++) into[i] = code(from + i);
        return into;
      },
    },
    texts,
  };
}

/**
 * Columns filled together in one pass over the rows.
 * @param fill writes `count` rows of each column, starting at row `from`
 */
export function columnsTogether(
  columns: number,
  fill: (into: readonly Float64Array[], from: number, count: number) => void,
): NumberSource[] {
  const scratch = Array.from({ length: columns }, reusableFloats);
  let arrays: Float64Array[] = [];
  let [lastFrom, lastCount] = [-1, -1];
  return scratch.map((_, column) => ({
    numbers(from, count) {
      if (from !== lastFrom || count !== lastCount) {
        arrays = scratch.map((allocate) => allocate(count));
        fill(arrays, from, count);
        [lastFrom, lastCount] = [from, count];
      }
      return arrays[column]!;
    },
  }));
}

/** Numbers that are codes; NaN is null. */
export function asCodes({ numbers }: NumberSource): CodeSource {
  const scratch = reusableInts();
  return {
    codes(from, count) {
      const values = numbers(from, count);
      const into = scratch(count);
      for (let i = 0; i < count; i++) {
        const value = values[i]!;
        into[i] = value === value ? value : -1;
      }
      return into;
    },
  };
}

/** Makes columns with one value per combination; all share one source of codes. */
export function columnsByShape(
  shape: Int32Array,
): (values: Float64Array | undefined, texts?: readonly string[]) => InMemoryColumn {
  const source: CodeSource = { codes: (from, count) => shape.subarray(from, from + count) };
  return (values, texts) => {
    const shared = sharedValue(values, texts);
    return shared === undefined ? { source, values: values!, ...(texts && { texts }) } : shared;
  };
}

/** A value from the combination of another row, given by `otherRow` (−1: null). */
export function columnsByShapeAt(
  otherRow: Int32Array,
  shape: Int32Array,
  values: Float64Array | undefined,
): InMemoryColumn {
  const scratch = reusableInts();
  const source: CodeSource = {
    codes(from, count) {
      const into = scratch(count);
      for (let i = 0; i < count; i++) {
        const row = otherRow[from + i]!;
        into[i] = row < 0 ? -1 : shape[row]!;
      }
      return into;
    },
  };
  return { source, values: values ?? new Float64Array() };
}

/** The value that all combinations share; undefined when they differ. */
export function sharedValue(
  values: Float64Array | undefined,
  texts?: readonly string[],
): string | number | null | undefined {
  if (!values || values.length === 0) return null;
  const first = values[0]!;
  if (!values.every((value) => Object.is(value, first))) return undefined;
  if (Number.isNaN(first)) return null;
  return texts ? texts[first]! : first;
}

/** An array of at least the requested length; reused when long enough. */
function reusableFloats(): (count: number) => Float64Array {
  let buffer = new Float64Array();
  return (count) => {
    if (buffer.length < count) buffer = new Float64Array(count);
    return buffer;
  };
}

function reusableInts(): (count: number) => Int32Array {
  let buffer = new Int32Array();
  return (count) => {
    if (buffer.length < count) buffer = new Int32Array(count);
    return buffer;
  };
}

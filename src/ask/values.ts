/** A number that a tool returned, in the base unit of its dimension: ns, a ratio, bytes, operations a second, or as it is. */
export interface KnownValue {
  value: number;
  dimension: Dimension;
  query: string;
}

/** unknown: nothing said the unit, so every unit of the claim is tried. */
export type Dimension = 'time' | 'ratio' | 'bytes' | 'rate' | 'plain' | 'unknown';

export interface Unit {
  dimension: Exclude<Dimension, 'unknown'>;
  /** Of the base unit. */
  scale: number;
}

const decimal = { k: 1e3, K: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15 } as const;
const binary = { Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40 } as const;

/** Units as people write them after a number. */
export const units: Readonly<Record<string, Unit>> = {
  ns: { dimension: 'time', scale: 1 },
  µs: { dimension: 'time', scale: 1e3 },
  us: { dimension: 'time', scale: 1e3 },
  ms: { dimension: 'time', scale: 1e6 },
  s: { dimension: 'time', scale: 1e9 },
  min: { dimension: 'time', scale: 60e9 },
  '%': { dimension: 'ratio', scale: 0.01 },
  B: { dimension: 'bytes', scale: 1 },
  bytes: { dimension: 'bytes', scale: 1 },
  ...Object.fromEntries(
    Object.entries({ ...decimal, ...binary }).map(([prefix, scale]): [string, Unit] => [
      `${prefix}B`,
      { dimension: 'bytes', scale },
    ]),
  ),
  ...Object.fromEntries(
    Object.entries(decimal).flatMap(([prefix, scale]): [string, Unit][] => [
      [`${prefix}B/s`, { dimension: 'rate', scale }],
      [`${prefix}FLOP/s`, { dimension: 'rate', scale }],
      [`${prefix}FLOPS`, { dimension: 'rate', scale }],
    ]),
  ),
};

/** By how the columns of tables and the keys of documents end. */
const suffixes: readonly [RegExp, Unit][] = [
  [/(?:^|_)ns$/, { dimension: 'time', scale: 1 }],
  [/(?:^|_)us$/, { dimension: 'time', scale: 1e3 }],
  [/(?:^|_)ms$/, { dimension: 'time', scale: 1e6 }],
  [/(?:^|_)(?:s|seconds)$/, { dimension: 'time', scale: 1e9 }],
  [/(?:^|_)(?:share|ratio|mfu|mbu|confidence)$/, { dimension: 'ratio', scale: 1 }],
  [/(?:^|_)(?:percent|pct)$/, { dimension: 'ratio', scale: 0.01 }],
  [/(?:^|_)per_s$/, { dimension: 'rate', scale: 1 }],
  [/(?:^|_)gb$/, { dimension: 'bytes', scale: 1e9 }],
  [/(?:^|_)bytes$/, { dimension: 'bytes', scale: 1 }],
  [
    /(?:^|_)(?:counts?|n|launches|kernels|copies|calls|rows|instances|layers|gaps|tokens|steps|runs|parameters|batch_size|registers)$/,
    { dimension: 'plain', scale: 1 },
  ],
];

/** Units of figures ({value, unit}) in documents. */
const figureUnits: Readonly<Record<string, Unit>> = {
  ns: units['ns']!,
  ms: units['ms']!,
  s: units['s']!,
  ratio: { dimension: 'ratio', scale: 1 },
  B: units['B']!,
  'B/s': { dimension: 'rate', scale: 1 },
  'FLOP/s': { dimension: 'rate', scale: 1 },
};

const unitOfKey = (key: string): Unit | null =>
  suffixes.find(([pattern]) => pattern.test(key.toLowerCase()))?.[1] ?? null;

/** Every number of a tool's answer, texts included: findings say theirs in sentences. */
export function valuesOf(answer: unknown, query: string): KnownValue[] {
  const found: KnownValue[] = [];
  const add = (value: number, unit: Unit | null) =>
    found.push({ value: value * (unit?.scale ?? 1), dimension: unit?.dimension ?? 'unknown', query });
  const walk = (one: unknown, key: string): void => {
    if (typeof one === 'number') {
      if (Number.isFinite(one)) add(one, unitOfKey(key));
    } else if (typeof one === 'string') {
      for (const { value, unit } of numbersIn(one)) add(value, unit);
    } else if (Array.isArray(one)) {
      for (const item of one) walk(item, key);
      found.push({ value: one.length, dimension: 'plain', query });
    } else if (one !== null && typeof one === 'object') {
      const { value, unit } = one as { value?: unknown; unit?: unknown };
      const ofFigure = typeof unit === 'string' ? figureUnits[unit] : undefined;
      if (typeof value === 'number' && ofFigure) add(value, ofFigure);
      for (const [name, item] of Object.entries(one)) {
        if (!(name === 'value' && ofFigure)) walk(item, name);
      }
    }
  };
  walk(answer, '');
  return found;
}

export interface WrittenNumber {
  /** With its unit, as it stands in the text. */
  text: string;
  start: number;
  end: number;
  /** In the unit it is written in. */
  value: number;
  unit: Unit | null;
  /** Half a step of its last digit, in the unit it is written in. */
  rounding: number;
}

const unitWords = Object.keys(units)
  .sort((a, b) => b.length - a.length)
  .map((word) => word.replaceAll(/[/%]/g, (character) => `\\${character}`))
  .join('|');
/** Not inside names (float16, H200, sm_90, 4096x4096 goes number by number), not [q1], not versions. */
const numberPattern = new RegExp(
  String.raw`(?<![\w.\[/-])([-−+]?)(\d{1,3}(?:[ ,\u00a0\u202f]\d{3})+(?!\d)|\d+)(\.\d+)?(e[+-]?\d+)?(?![\d.]*\.\d)(?:[\s\u00a0]?(${unitWords})(?![\w/]))?(?=$|[^\w]|x\d|×)`,
  'g',
);

/** Numbers of a text, outside code in backticks. */
export function numbersIn(text: string): WrittenNumber[] {
  const plain = text.replaceAll(/`[^`]*`/g, (code) => ' '.repeat(code.length));
  return [...plain.matchAll(numberPattern)].map((match) => {
    const [whole, sign, integer, fraction = '', exponent = '', unit] = match;
    const digits = `${integer!.replaceAll(/[^\d]/g, '')}${fraction}${exponent}`;
    const value = Number(digits) * (sign === '-' || sign === '−' ? -1 : 1);
    const last = 10 ** (Number(exponent.slice(1) || 0) - Math.max(0, fraction.length - 1));
    return {
      text: whole,
      start: match.index,
      end: match.index + whole.length,
      value,
      unit: unit === undefined ? null : units[unit]!,
      rounding: 0.5 * last,
    };
  });
}

/**
 * ncu scales the columns of a page ("us" in one file, "ms" in the next; "Kbyte", "Tbyte/s", "sector/ns").
 * Every value is converted to its base unit here. `--print-units base` does the same but rounds to two decimals, so
 * the scaled page is more exact. Prefixes are decimal: 6.016 Kbyte is 6,016 byte on the base page.
 */
const scales: Record<string, readonly [base: string, factor: number]> = {
  ns: ['ns', 1],
  nsecond: ['ns', 1],
  us: ['ns', 1e3],
  usecond: ['ns', 1e3],
  ms: ['ns', 1e6],
  msecond: ['ns', 1e6],
  s: ['ns', 1e9],
  second: ['ns', 1e9],
  ...prefixed('byte', ['byte', 'Kbyte', 'Mbyte', 'Gbyte', 'Tbyte']),
  ...prefixed('hz', ['hz', 'Khz', 'Mhz', 'Ghz', 'Thz']),
};

/** Old versions write cycle/nsecond instead of Ghz. */
const perSecond: Record<string, number> = {
  s: 1,
  second: 1,
  ms: 1e3,
  msecond: 1e3,
  us: 1e6,
  usecond: 1e6,
  ns: 1e9,
  nsecond: 1e9,
};

function prefixed(base: string, names: string[]): Record<string, readonly [string, number]> {
  return Object.fromEntries(names.map((name, i) => [name, [base, 1000 ** i] as const]));
}

export interface BaseUnit {
  /** ns, byte, byte/s, hz, %, inst, …; null if the page has none. */
  unit: string | null;
  factor: number;
}

/** Base unit and factor for a unit of a page. An unknown unit is returned unchanged. */
export function baseUnit(unit: string): BaseUnit {
  if (unit === '') return { unit: null, factor: 1 };
  const [count = '', per] = unit.split('/');
  const [base, factor] = scales[count] ?? [count, 1];
  if (per === undefined) return { unit: base, factor };
  const rate = perSecond[per];
  if (rate === undefined) return { unit: `${base}/${per}`, factor };
  if (count === 'cycle') return { unit: 'hz', factor: rate };
  return { unit: `${base}/s`, factor: factor * rate };
}

/**
 * A number of a page: thousands commas, an exponent, and the instances that `--print-metric-instances` adds
 * ("12 (1: 4; 2: 8)") dropped.
 * @returns null for n/a, "no data", nan; undefined for a text, which is not a counter
 */
export function counterValue(text: string): number | null | undefined {
  // Most values are plain; a full-set page has 2,200 per kernel.
  const plain = Number(text);
  if (Number.isFinite(plain) && text !== '') return plain;
  if (/^(n\/a|no data|-?nan|-?inf|\(!\) .*)$/i.test(text)) return null;
  const match = /^(-?(?:\d[\d,]*)?\.?\d+(?:e[+-]?\d+)?)(?:\s*[(;].*)?$/i.exec(text);
  return match ? Number(match[1]!.replaceAll(',', '')) : undefined;
}

import { type Figure, halfInterval, type MeasuredFigure } from '../model/figure.js';

/** Keeps a number and its unit on one line; the terminal turns it into a plain space at the end. */
export const nbsp = '\u00a0';
/** Stands where a value is missing; the reason stands beside it or in a note. */
export const noValue = '–';

const minus = '−';

/** No clock here ticks faster than 1 ns: anything below is the rounding of a sum. */
const smallestMs = 1e-6;

interface Rung {
  /** Smallest magnitude, in the source unit, that is shown in this unit. */
  from: number;
  factor: number;
  unit: string;
}

const decimal = (unit: string): Rung[] =>
  ['', 'k', 'M', 'G', 'T', 'P'].map((prefix, index) => ({
    from: index === 0 ? 0 : 1000 ** index,
    factor: 1000 ** index,
    unit: `${prefix}${unit}`,
  }));

/** Memory sizes in powers of 1024; rates in powers of 1000, as data sheets give them, and memory profiles, whose unit is 10^9 bytes. */
const ladders: Record<string, Rung[]> = {
  ms: [
    { from: 0, factor: 1e-6, unit: 'ns' },
    { from: 1e-3, factor: 1e-3, unit: 'µs' },
    { from: 0.1, factor: 1, unit: 'ms' },
    { from: 10_000, factor: 1000, unit: 's' },
  ],
  s: [
    { from: 0, factor: 1e-9, unit: 'ns' },
    { from: 1e-6, factor: 1e-6, unit: 'µs' },
    { from: 1e-4, factor: 1e-3, unit: 'ms' },
    { from: 1, factor: 1, unit: 's' },
  ],
  ns: [
    { from: 0, factor: 1, unit: 'ns' },
    { from: 1e3, factor: 1e3, unit: 'µs' },
    { from: 1e5, factor: 1e6, unit: 'ms' },
    { from: 1e10, factor: 1e9, unit: 's' },
  ],
  B: ['B', 'KiB', 'MiB', 'GiB', 'TiB'].map((unit, index) => ({
    from: index === 0 ? 0 : 1024 ** index,
    factor: 1024 ** index,
    unit,
  })),
  GB: ['B', 'kB', 'MB', 'GB', 'TB'].map((unit, index) => ({
    from: index === 0 ? 0 : 1000 ** (index - 3),
    factor: 1000 ** (index - 3),
    unit,
  })),
  'B/s': decimal('B/s'),
  parameters: [
    { from: 0, factor: 1, unit: 'parameters' },
    { from: 1e6, factor: 1e6, unit: `M${nbsp}parameters` },
    { from: 1e9, factor: 1e9, unit: `B${nbsp}parameters` },
  ],
  FLOP: decimal('FLOP'),
  'FLOP/s': decimal('FLOP/s'),
};

const unitNames: Record<string, string> = {
  bytes: 'B',
  byte: 'B',
  'bytes/s': 'B/s',
  FLOPs: 'FLOP',
  FLOPS: 'FLOP/s',
  'FLOP/B': 'FLOP/byte',
  'tokens/s': 'tok/s',
  // What load tests count per second are requests.
  '1/s': 'req/s',
  percent: '%',
  '1': 'ratio',
  share: 'ratio',
  fraction: 'ratio',
};

function unitOf(figure: MeasuredFigure): string {
  return unitNames[figure.unit] ?? figure.unit;
}

function decimalsFor(value: number, digits: number): number {
  if (value === 0) return 0;
  const exponent = Number(value.toExponential(digits - 1).split('e')[1]);
  return Math.max(0, digits - 1 - exponent);
}

function fixed(value: number, decimals: number): string {
  const [whole = '', fraction] = Math.abs(value).toFixed(decimals).split('.');
  const grouped = whole.replaceAll(/\B(?=(?:\d{3})+$)/g, nbsp);
  const text = fraction === undefined ? grouped : `${grouped}.${fraction}`;
  return value < 0 && /[1-9]/.test(text) ? `${minus}${text}` : text;
}

/** `value` with at least `digits` significant digits, whole digits always kept: 39.8, 4.40, 3 216. */
export function formatNumber(value: number, digits = 3): string {
  if (!Number.isFinite(value)) return noValue;
  if (value !== 0 && Math.abs(value) < 1e-6) return value.toExponential(digits - 1).replace('-', minus);
  return fixed(value, decimalsFor(value, digits));
}

/** A whole number of things: 12, 3 720. */
export const formatCount = (count: number): string => fixed(count, 0);

function rungOf(value: number, unit: string): Rung {
  const ladder = ladders[unit];
  if (!ladder) return { from: 0, factor: 1, unit };
  return ladder.findLast((rung) => Math.abs(value) >= rung.from) ?? { from: 0, factor: 1, unit };
}

/** A number with its unit, in the prefix that reads best: 92.0 MiB, 21.4 GB/s, 4.40 ms, 71 %. */
export function formatQuantity(value: number, unit: string, digits = 3): string {
  const name = unitNames[unit] ?? unit;
  if (name === 'ratio') return formatPercent(value);
  if (name === '%') return formatPercent(value / 100);
  if (name === '') return formatNumber(value, digits);
  if (value === 0 || (name === 'ms' && Math.abs(value) < smallestMs)) return `0${nbsp}${name}`;
  const rung = rungOf(value, name);
  return `${formatNumber(value / rung.factor, digits)}${nbsp}${rung.unit}`;
}

export const formatBytes = (bytes: number): string => formatQuantity(bytes, 'B');
export const formatMs = (ms: number): string => formatQuantity(ms, 'ms');

/** Times for one column, all in ms with the decimals that suit the largest: 4.003, 0.496, 0.002 with 4 digits. */
export function formatMsColumn(values: number[], digits = 4): string[] {
  const largest = Math.max(...values.map(Math.abs), 0);
  const least = largest < 1000 || digits > 3 ? 1 : 0;
  const decimals = Math.min(4, Math.max(least, decimalsFor(largest, digits)));
  return values.map((value) => fixed(value, decimals));
}

/** A share (1 = 100 %) in percent: whole from 10 % on, one decimal below. */
export function formatPercent(share: number): string {
  return Number.isFinite(share) ? `${percentNumber(share * 100)}${nbsp}%` : noValue;
}

/** Percent of a figure; below 0.1 % with two digits, so that what was measured is not shown as nothing. */
const figurePercent = (percent: number): string =>
  percent !== 0 && Math.abs(percent) < 0.1 ? formatNumber(percent, 2) : percentNumber(percent);

const percentNumber = (percent: number): string =>
  Number.isFinite(percent) ? fixed(percent, Math.abs(percent) >= 9.95 || percent === 0 ? 0 : 1) : noValue;

interface Parts {
  /** Number as shown, or "–". */
  text: string;
  unit: string;
  /** "± 2.1 (95 %, n = 12)", "n = 12", or "". */
  spread: string;
  /** "± 2.1", "[1.2, 4.0]", or "". */
  interval: string;
  /** Why there is no number. */
  reason: string | null;
}

/**
 * A figure in its parts, for presenters that set number and unit apart. The number is the same with and without its
 * interval, which keeps the digits that it needs.
 */
export function figureParts(figure: Figure): Parts {
  if (figure.value === null)
    return { text: noValue, unit: '', spread: '', interval: '', reason: figure.reason.text };
  const unit = unitOf(figure);
  const percent = unit === 'ratio' || unit === '%';
  const rung = unit === 'ratio' ? { from: 0, factor: 0.01, unit: '%' } : rungOf(figure.value, unit);
  const value = figure.value / rung.factor;
  const n = figure.n === undefined ? '' : `n${nbsp}=${nbsp}${formatCount(figure.n)}`;
  if (!figure.ci95) {
    const text = percent ? figurePercent(value) : formatNumber(value);
    return { text, unit: rung.unit, spread: n && `(${n})`, interval: '', reason: null };
  }
  const low = figure.ci95[0] / rung.factor;
  const high = figure.ci95[1] / rung.factor;
  const half = (halfInterval(figure) ?? 0) / rung.factor;
  const own = decimalsFor(value, percent ? 2 : 3);
  const decimals = Math.min(Math.max(own, half > 0 ? decimalsFor(half, 1) : 0), decimalsFor(value, 5));
  const confidence = `(95${nbsp}%${n ? `, ${n}` : ''})`;
  // A skewed interval (ratio, bootstrap, one cut at 0) has no honest "±".
  const skewed = half > 0 && (low === 0 || Math.abs(high + low - 2 * value) > 0.2 * (high - low));
  const interval = skewed
    ? `[${fixed(low, decimals)}, ${fixed(high, decimals)}]`
    : `±${nbsp}${fixed(half, decimals)}`;
  const text = percent ? figurePercent(value) : formatNumber(value);
  return { text, unit: rung.unit, spread: `${interval} ${confidence}`, interval, reason: null };
}

/** "4.40 ms", or "–" when there is no value. */
export function formatFigure(figure: Figure): string {
  const { text, unit } = figureParts(figure);
  return unit ? `${text}${nbsp}${unit}` : text;
}

/** "181 ms ± 2 (95 %, n = 12)". */
export function formatFigureWithSpread(figure: Figure): string {
  const { spread } = figureParts(figure);
  return spread ? `${formatFigure(figure)} ${spread}` : formatFigure(figure);
}

/** "181 ms ± 2", for lines that name n once. */
export function formatFigureWithInterval(figure: Figure): string {
  const { interval } = figureParts(figure);
  return interval ? `${formatFigure(figure)} ${interval}` : formatFigure(figure);
}

/**
 * A utilisation (MFU, MBU) cannot pass 100 % of a roof. One that does means that the work was counted too high, the
 * roof too low, or the time too short: the reader is told, the value is neither hidden nor clamped.
 */
export function isAccountingFault(figure: Figure): boolean {
  if (figure.value === null) return false;
  return figure.value > (unitOf(figure) === '%' ? 100 : 1);
}

/** "71 %", "0.031 %" of launch-bound programs, or "112 % (accounting fault)". */
export function formatUtilization(figure: Figure): string {
  const text = formatFigure(figure);
  return isAccountingFault(figure) ? `${text} (accounting fault)` : text;
}

/** Keeps numbers with their units, which texts of analyses set apart by plain spaces. */
export function unbroken(text: string): string {
  return text.replaceAll(
    /(\d) (%|ms|µs|ns|s|J|W|MHz|GB|MB|KiB|GiB|MiB|[GT]B\/s|[GT]FLOP\/s|tok\/s|tokens\/s|times)(?=[\s.,;:)]|$)/g,
    `$1${nbsp}$2`,
  );
}

/**
 * All formatting of numbers, for views, sentences, charts and messages. A space separates number and unit; renderers that wrap lines
 * (terminal, page) keep them together with `keepUnits`. Thousands are separated by a no-break space. Sizes in memory, files and copies use
 * powers of 1024, rates and documents in GB powers of 1000.
 */
import type { Figure, MeasuredFigure } from '../model/figure.js';
import { halfInterval } from '../model/half-interval.js';
import { ladders, singularUnits, unitNames, type Rung } from './units.js';

/** Keeps words on one line when text is wrapped; the terminal replaces it by a plain space at the end. */
export const nbsp = '\u00a0';
/** Shown for a missing value; the reason is next to it or in a note. */
export const noValue = '–';

const minus = '−';

function unitOf(figure: MeasuredFigure): string {
  return unitNames[figure.unit] ?? figure.unit;
}

/** Maximum decimals, enough for any number from 1e-6 on: smaller ones have an exponent. toFixed throws above 100. */
const maxDecimals = 20;

function decimalsFor(value: number, digits: number): number {
  if (value === 0) return 0;
  const exponent = Number(value.toExponential(digits - 1).split('e')[1]);
  return Math.min(Math.max(0, digits - 1 - exponent), maxDecimals);
}

function fixed(value: number, decimals: number): string {
  const [integer = '', fraction] = Math.abs(value).toFixed(decimals).split('.');
  const grouped = integer.replaceAll(/\B(?=(?:\d{3})+$)/g, nbsp);
  const text = fraction === undefined ? grouped : `${grouped}.${fraction}`;
  return value < 0 && /[1-9]/.test(text) ? `${minus}${text}` : text;
}

/** `value` with at least `digits` significant digits; integer digits are always kept: 39.8, 4.40, 3 216. */
export function formatNumber(value: number, digits = 3): string {
  if (!Number.isFinite(value)) return noValue;
  if (value !== 0 && Math.abs(value) < 1e-6) return value.toExponential(digits - 1).replaceAll('-', minus);
  return fixed(value, decimalsFor(value, digits));
}

/** A count, which may be a mean: 12, 3 720, 8.3. */
export function formatCount(count: number): string {
  const isRound = Math.abs(count) >= 100 || Math.abs(count - Math.round(count)) < 0.05;
  return fixed(count, isRound ? 0 : 1);
}

/** A mean count: an integer from 10 on. */
export const roundMeanCount = (count: number): number => (count >= 10 ? Math.round(count) : count);

/** "1 kernel", "2 kernels", "0.9 stretches" for a mean. */
export function plural(count: number, singular: string, many = `${singular}s`): string {
  const number = formatCount(count);
  return `${number} ${number === '1' ? singular : many}`;
}

/** A setting (not a measurement) in its own unit, as short as typed, with up to four digits: 4, 0.5 s, 64 MiB. */
export function formatSetting(value: number, unit = ''): string {
  const number = String(Number(value.toPrecision(4)));
  return unit === '' ? number : withUnit(number, unit);
}

/** A limit that is a share (0.05), in percent: 5 %. */
export const formatShareSetting = (share: number): string => formatSetting(100 * share, '%');

/** A duration or an age: 42 s, 3 min, 1 h 20 min, 12 days. */
export function formatDuration(seconds: number): string {
  if (seconds < 90) return `${fixed(Math.max(1, seconds), 0)} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 90) return `${minutes} min`;
  const fullHours = Math.floor(minutes / 60);
  const remainder = minutes % 60;
  if (fullHours < 48) return remainder === 0 ? `${fullHours} h` : `${fullHours} h ${remainder} min`;
  return plural(Math.floor(fullHours / 24), 'day');
}

/** An axis tick for values up to `max`: all ticks in the unit of `max`, without unneeded digits: 0.5 GiB, 20 ms. */
export function formatTick(value: number, unit: string, max: number): string {
  const name = unitNames[unit] ?? unit;
  const { factor, unit: tickUnit } = name === 'ratio' ? { factor: 0.01, unit: '%' } : rungOf(max, name);
  const tick = Number((value / factor).toPrecision(6));
  const text = fixed(tick, String(tick).split('.')[1]?.length ?? 0);
  return tickUnit === '×' ? `${text}×` : tickUnit === '' ? text : withUnit(text, tickUnit, nbsp);
}

/** A time on an axis with steps of `stepNs`, in the unit of `largestNs`, with enough digits to distinguish neighbors: 31.8640 s. */
export function formatTimeTick(ns: number, stepNs: number, largestNs = Math.abs(ns)): string {
  const { factor, unit } = rungOf(Math.max(largestNs, stepNs), 'ns');
  return `${fixed(ns / factor, Math.max(0, Math.ceil(-Math.log10(stepNs / factor) - 1e-9)))}${nbsp}${unit}`;
}

/** A factor: 26.0×, 1.85×, 0.990×, 1 340×; with the digits that an uncertainty of ± `half` supports. */
export const formatFactor = (factor: number, half = 0): string =>
  Number.isFinite(factor)
    ? `${numberWithin(Math.abs(factor) < 1000 ? factor : Number(factor.toPrecision(3)), half, { from: 0, factor: 1, unit: '' })}×`
    : noValue;

/** The unit for a value as displayed: 999.9 ms become 1.00 s, 1023.9 MiB become 1.00 GiB. */
function rungOf(value: number, unit: string, digits = 3): Rung {
  const size = Math.abs(value);
  const ladder = size === 0 ? [] : (ladders[unit] ?? []);
  const index = ladder.findLastIndex(({ from }) => size >= from);
  const [rung, next] = [ladder[index], ladder[index + 1]];
  // Rounding to one digit or more raises a number by less than a tenth; most numbers need no text here.
  if (rung && next && size < next.from && size >= 0.9 * next.from) {
    const text = fixed(size / rung.factor, decimalsFor(size / rung.factor, digitsOf(rung, digits)));
    if (Number(text.replaceAll(nbsp, '')) >= next.from / rung.factor) return next;
  }
  return rung ?? { from: 0, factor: 1, unit };
}

/** Clocks have a resolution of 1 ns, so two digits are enough. */
const digitsOf = (rung: Rung, digits: number): number => (rung.unit === 'ns' ? Math.min(digits, 2) : digits);

/** Whether a value is an integer count: ns, bytes, operations and parameters below the first prefix, processes, bits. */
const isInteger = ({ factor, unit }: Rung, value: number): boolean =>
  ['B', 'FLOP', 'parameters', 'processes', 'bit field', 'ns'].includes(unit) &&
  Math.abs(value / factor - Math.round(value / factor)) < 1e-6;

/** Rates are not accurate to five digits: 34 013 becomes 34 000. */
const isRate = ({ unit }: Rung): boolean => unit === 'tok/s' || unit === 'req/s';

/** A number with its unit and the most readable prefix: 92.0 MiB, 21.4 GB/s, 4.40 ms, 71 %. */
export function formatQuantity(value: number, unit: string, digits = 3): string {
  const name = unitNames[unit] ?? unit;
  if (name === 'ratio') return formatPercent(value);
  if (name === '%') return formatPercent(value / 100);
  if (name === '') return formatNumber(value, digits);
  if (!Number.isFinite(value)) return noValue;
  const rung = rungOf(value, name, digits);
  // A rounding error of a sum.
  if (rung.unit === 'ns' && Math.abs(value / rung.factor) < 1) return `0 ${name}`;
  if (isInteger(rung, value)) return withUnit(fixed(value / rung.factor, 0), rung.unit);
  const number = isRate(rung) ? Number(value.toPrecision(digits)) : value / rung.factor;
  return `${formatNumber(number, digitsOf(rung, digits))} ${rung.unit}`;
}

/** A number and its unit, in the singular for 1 if it is a word. */
export const withUnit = (number: string, unit: string, gap = ' '): string =>
  `${number}${gap}${number === '1' ? (singularUnits[unit] ?? unit) : unit}`;

/** Both ends of a range in one unit, with the digits that its width supports: 3.3 to 4.3 ms; one value if both have the same text. */
export function formatRange(low: number, high: number, unit: string): string {
  const larger = Math.max(Math.abs(low), Math.abs(high));
  const rung = rungOf(larger, unitNames[unit] ?? unit);
  const decimals = decimalsWithin(larger / rung.factor, (high - low) / 2 / rung.factor, digitsOf(rung, 3));
  const [from, to] = [low, high].map((end) => fixed(end / rung.factor, decimals));
  return `${from === to ? to : `${from} to ${to}`} ${rung.unit}`;
}

/** A value with the digits that an uncertainty of ± `half` supports: 1.8 ms if half is 0.5 ms. */
export function formatWithin(value: number, half: number, unit: string): string {
  const rung = rungOf(value, unitNames[unit] ?? unit);
  return `${numberWithin(value / rung.factor, half / rung.factor, rung)} ${rung.unit}`;
}

/** A value in the unit of its range, and the range; null if the range is the value itself. */
export function formatWithRange(
  value: number,
  low: number,
  high: number,
  unit: string,
): { value: string; range: string | null } {
  const rung = rungOf(Math.max(Math.abs(low), Math.abs(high)), unitNames[unit] ?? unit);
  const half = (high - low) / 2 / rung.factor;
  const number = value / rung.factor;
  const range = formatRange(low, high, unit);
  if (!range.includes(' to '))
    return { value: `${numberWithin(number, half, rung)} ${rung.unit}`, range: null };
  // As many decimals as the range, and at least one significant digit.
  const decimals = decimalsWithin(
    Math.max(Math.abs(low), Math.abs(high)) / rung.factor,
    half,
    digitsOf(rung, 3),
  );
  return { value: `${fixed(number, Math.max(decimals, decimalsFor(number, 1)))} ${rung.unit}`, range };
}

/** A difference from this share on is shown as a factor: a percentage above 1 000 % is hard to read. */
export const minFactorShare = 9.995;

/** A difference with its sign: +4.2 %, −12 ms. One that rounds to 0 has no sign. */
export function formatSigned(value: number, unit: string, digits = 3): string {
  // Nothing but all of it is 100 % less.
  if (unit === 'ratio' && value >= minFactorShare) return formatFactor(1 + value);
  if (unit === 'ratio' && value > -1 && value < -0.995)
    return `${fixed(Math.ceil(value * 1e4) / 100, 2)}${nbsp}%`;
  const text = formatQuantity(value, unit, digits);
  return isPositive(value, text) ? `+${text}` : text;
}

/** Whether a number takes a plus sign: not one that is shown as 0 or as less than a digit. */
export const isPositive = (value: number, text: string): boolean => value > 0 && /^[^<]*[1-9]/.test(text);

export const formatBytes = (bytes: number): string => formatQuantity(bytes, 'B');
/** Bytes of a memory profile, in units of 10^9; four digits, so that components and total can be summed. */
export const formatGb = (bytes: number): string => formatQuantity(bytes / 1e9, 'GB', 4);
export const formatMs = (ms: number): string => formatQuantity(ms, 'ms');
export const formatNs = (ns: number): string => formatQuantity(ns, 'ns');

/**
 * Numbers for one column or row of bars, in the unit of their total and with its decimals: 4.00, 0.50, <0.01, 0.00 ms.
 * @param half half width of the total's interval, which limits the digits; null without one
 */
export function formatColumn(
  values: readonly number[],
  unit: string,
  total: number,
  half: number | null = null,
): { texts: string[]; unit: string } {
  const rung = rungOf(total, unitNames[unit] ?? unit);
  const decimals = decimalsWithin(total / rung.factor, (half ?? 0) / rung.factor, digitsOf(rung, 3));
  const smallest = fixed(10 ** -decimals, decimals);
  const text = (value: number): string => {
    const number = fixed(value / rung.factor, decimals);
    // What rounding leaves of an exact sum is 0.
    if (Math.abs(value) <= 1e-9 * Math.abs(total) || /[1-9]/.test(number)) return number;
    return value < 0 ? `>${minus}${smallest}` : `<${smallest}`;
  };
  return { texts: values.map(text), unit: rung.unit };
}

/** One number of a column, in the unit and with the decimals of the total that it is a part of: 0.11 ms of 5.88 ms; `signed`: +0.11 ms. */
export function formatPartOf(
  value: number,
  unit: string,
  total: number,
  { signed = false, half = null }: { signed?: boolean | undefined; half?: number | null | undefined } = {},
): string {
  const { texts, unit: shownUnit } = formatColumn([value], unit, total, half);
  return `${signed && isPositive(value, texts[0]!) ? '+' : ''}${texts[0]} ${shownUnit}`;
}

/** A share (1 = 100 %) in percent: integer from 10 % on, one decimal below, two digits below 0.1 %, so that a measured share is never 0, and "<0.01 %"; from 1000 % on three digits. */
export function formatPercent(share: number): string {
  return Number.isFinite(share) ? `${percentNumber(share * 100)} %` : noValue;
}

/** A part of a whole; <0.1 % for a small part, 0 for none or what rounding left. */
export function formatPart(part: number, total: number): string {
  const share = total > 0 ? part / total : 0;
  return share > 1e-12 && share < 0.000_95 ? '<0.1 %' : formatPercent(share);
}

function percentNumber(percent: number): string {
  const size = Math.abs(percent);
  if (size >= 999.5) return fixed(Number(percent.toPrecision(3)), 0);
  if (size >= 9.95 || size < 1e-6) return fixed(percent, 0);
  if (size < 0.01) return '<0.01';
  return size < 0.095 ? formatNumber(percent, 2) : fixed(percent, 1);
}

interface Parts {
  /** Number as displayed, or "–". */
  text: string;
  unit: string;
  /** "± 2.1 (95 %, n = 12)", "± 2.1 (95 %, n = 5 launches)", "n = 12", or ""; n is the number of values behind the interval. */
  spread: string;
  /** "± 2.1", "[1.2, 4.0]", or "". */
  interval: string;
  /** Why the number is missing. */
  reason: string | null;
}

/**
 * A figure in its parts, for renderers that place number and unit separately. The number has three digits, or two if its interval is wide:
 * 4.40 ms ± 0.03, 3.3 s ± 0.6. A skewed interval (ratio, bootstrap, one cut at 0) has no valid "±" and shows its ends.
 */
export function figureParts(figure: Figure): Parts {
  if (figure.value === null)
    return { text: noValue, unit: '', spread: '', interval: '', reason: figure.reason.text };
  const unit = unitOf(figure);
  const rung = unit === 'ratio' ? { from: 0, factor: 0.01, unit: '%' } : rungOf(figure.value, unit);
  const unroundedHalf = (halfInterval(figure) ?? 0) / rung.factor;
  const step = roundingStep(figure.value / rung.factor, unroundedHalf);
  const roundToStep = (number: number) => (step === null ? number : Math.round(number / step) * step);
  const number = roundToStep(figure.value / rung.factor);
  const value = isRate(rung) && Math.abs(number) >= 1e4 ? Number(number.toPrecision(3)) : number;
  const half = roundToStep(unroundedHalf);
  const text = rung.unit === '%' ? percentNumber(value) : numberWithin(value, half, rung);
  const { ci95_over: over } = figure;
  const n = over
    ? `n = ${plural(over.n, over.unit === 'launches' ? 'launch' : over.unit.slice(0, -1), over.unit)}`
    : figure.n === undefined
      ? ''
      : `n = ${formatCount(figure.n)}`;
  const parts = { text, unit: rung.unit, reason: null };
  if (!figure.ci95) return { ...parts, spread: n && `(${n})`, interval: '' };
  const [low, high] = figure.ci95.map((end) => roundToStep(end / rung.factor)) as [number, number];
  const textDecimals = text.split('.')[1]?.length ?? 0;
  const decimals = Math.min(
    Math.max(textDecimals, half > 0 ? decimalsFor(half, 1) : 0),
    decimalsFor(value, 5),
  );
  const isSkewed = half > 0 && (low === 0 || Math.abs(high + low - 2 * value) > 0.2 * (high - low));
  const interval = isSkewed
    ? `[${fixed(low, decimals)}, ${fixed(high, decimals)}]`
    : `± ${fixed(half, decimals)}`;
  return { ...parts, spread: `${interval} (95 %${n && `, ${n}`})`, interval };
}

/** Rounding step for integer digits that a wide interval does not support: 57 000 ± 267 000; null: none. */
function roundingStep(value: number, half: number): number | null {
  if (!(half >= Math.abs(value) / 2) || !(Math.abs(value) >= 1000) || !Number.isFinite(half)) return null;
  return 10 ** (Math.floor(Math.log10(Math.abs(value))) - 1);
}

/** As many digits as the half width supports, at least two and at most three; a half width of 1 to 3 units needs its second digit. */
function numberWithin(value: number, half: number, rung: Rung): string {
  const maxDigits = digitsOf(rung, 3);
  if (!(half > 0) || Math.abs(value) < 1e-6)
    return formatNumber(isRate(rung) ? Number(value.toPrecision(maxDigits)) : value, maxDigits);
  return fixed(value, decimalsWithin(value, half, maxDigits));
}

function decimalsWithin(value: number, half: number, maxDigits: number): number {
  if (!(half > 0)) return decimalsFor(value, maxDigits);
  const needed = decimalsFor(half, Number(half.toExponential(1).slice(0, 3)) < 3.55 ? 2 : 1);
  return Math.min(decimalsFor(value, maxDigits), Math.max(decimalsFor(value, 2), needed));
}

/** "4.40 ms", or "–" without a value. */
export function formatFigure(figure: Figure): string {
  const { text, unit } = figureParts(figure);
  return unit ? `${text} ${unit}` : text;
}

/** "181 ms ± 2 (95 %, n = 12)". */
export function formatFigureWithSpread(figure: Figure): string {
  const { spread } = figureParts(figure);
  return spread ? `${formatFigure(figure)} ${spread}` : formatFigure(figure);
}

/** "± 2 (95 %, n = 12)", for display apart from the value; empty without an interval. */
export const formatSpread = (figure: Figure): string => figureParts(figure).spread;

/** "181 ms ± 2", for lines that state n once. */
export function formatFigureWithInterval(figure: Figure): string {
  const { interval } = figureParts(figure);
  return interval ? `${formatFigure(figure)} ${interval}` : formatFigure(figure);
}

/**
 * A utilization (MFU, MBU) cannot exceed 100 % of a roofline. If it does, the work was counted too high, the roofline is too low, or the
 * time too short: the value is marked, not hidden or clamped.
 */
export function isOverRoof(figure: Figure): boolean {
  if (figure.value === null) return false;
  return figure.value > (unitOf(figure) === '%' ? 100 : 1);
}

/** "71 %", "0.031 %" of launch-bound programs, or "112 % (invalid)". */
export function formatUtilization(figure: Figure): string {
  const text = formatFigure(figure);
  return isOverRoof(figure) ? `${text} (invalid)` : text;
}

const unitPattern = [
  ...new Set([
    ...Object.values(ladders).flatMap((ladder) => ladder.map(({ unit }) => unit)),
    '%',
    'J',
    'W',
    'Hz',
    'MHz',
    'tok/s',
    'tokens/s',
    'req/s',
    'FLOP/byte',
    'times',
  ]),
]
  .map((unit) => unit.replace('/', String.raw`\/`))
  .join('|');
const breakableSpace = new RegExp(
  String.raw`(?<=\d) (?=(?:${unitPattern})(?:[\s.,;:)\]]|$))|(?<=±) (?=\d)|(?<=\bn) (?== \d)|(?<=\bn =) (?=\d)`,
  'g',
);

/** Keeps numbers and their units on one line when text is wrapped. */
export const keepUnits = (text: string): string => text.replaceAll(breakableSpace, nbsp);

import { firstFrom } from './value-index.js';
import { type Unit, unitOf, unitPattern } from './units.js';

export interface WrittenNumber {
  /** With its unit, as written in the text. */
  text: string;
  start: number;
  end: number;
  /** In the written unit. */
  value: number;
  unit: Unit | null;
  /** Half a step of its last digit, in the written unit. */
  rounding: number;
}

/** Suffixes directly after a number: "3.7M kernels", "12k launches". */
const suffixFactors: Readonly<Record<string, number>> = { k: 1e3, K: 1e3, M: 1e6, G: 1e9 };

/**
 * Not inside names (float16, H200, sm_90; 4096x4096 is read number by number), not [q1], not versions. A hyphen before the number is a
 * range after a digit ("10-23 ms") and part of a name after a letter ("GPT-2"). [3] is a footnote. The number of digits is limited, since
 * trying every end of a long run takes quadratic time.
 */
const numberPattern = new RegExp(
  String.raw`(?<![\p{L}\p{Nd}_.])(?<![\p{L}_][-/])(?<!\[(?=\d+\]))([-−+]?)(\d{1,3}(?:[ ,'\u00a0\u2009\u202f]\d{3}){1,8}(?!\d)|\d{1,40})(?!\d)(\.\d{1,40}(?!\d))?(e[+-]?\d{1,4})?(?![\d.]{0,80}\.\d)` +
    String.raw`(?:([kKMG])(?![\p{L}\p{Nd}_/])|[\s\u00a0\u202f-]?(${unitPattern})(?![\p{L}\p{Nd}_]))?(?=$|[^\p{L}\p{Nd}_]|x\d|×)`,
  'giu',
);

/** Numbers of a text. In code (backticks) only those with a unit: others are arguments, sizes and indices. */
export function numbersIn(text: string): WrittenNumber[] {
  const plain = asciiDigits(text).replaceAll(dateOrTime, (moment) => ' '.repeat(moment.length));
  // An odd number of backticks before the position.
  const ticks = [...plain.matchAll(/`/g)].map(({ index }) => index);
  const inCode = (index: number) => firstFrom(ticks, index) % 2 === 1 && index < (ticks.at(-1) ?? 0);
  const found = [...[...plain.matchAll(numberPattern)].map(digitsOf), ...wordsOf(plain)]
    .toSorted((a, b) => a.start - b.start)
    .map((written) => ({ ...written, text: text.slice(written.start, written.end) }));
  return ranges(found, plain).filter(({ start, unit }) => unit !== null || !inCode(start));
}

/** Dates and times of day are not measurements. */
const dateOrTime =
  /\b\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?Z?)?|\b\d{1,2}:\d{2}(?::\d{2})?\b/g;

/** Converts digits of other scripts to ASCII; each keeps its width. */
const asciiDigits = (text: string): string =>
  text.replaceAll(/(?![0-9])\p{Nd}/gu, (digit) => {
    const zero = digit.codePointAt(0)!;
    // The digits of every script are consecutive from a multiple of 16, or of 16 plus 6.
    const value = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].find(
      (n) => !/^\p{Nd}$/u.test(String.fromCodePoint(zero - n - 1)),
    );
    return `${value ?? 0}`.padEnd(digit.length, '0');
  });

function digitsOf(match: RegExpExecArray): Omit<WrittenNumber, 'text'> {
  const [matched, sign, integer, fraction = '', exponent = '', thousands, unit] = match;
  const factor = thousands === undefined ? 1 : (suffixFactors[thousands] ?? 1e6);
  const digits = `${integer!.replaceAll(/[^\d]/g, '')}${fraction}${exponent}`;
  const value = Number(digits) * factor * (sign === '-' || sign === '−' ? -1 : 1);
  const lastDigit = 10 ** (Number(exponent.slice(1) || 0) - Math.max(0, fraction.length - 1)) * factor;
  return {
    start: match.index,
    end: match.index + matched.length,
    value,
    unit: unit === undefined ? null : isCount(match) ? billions : unitOf(unit.replaceAll(/[\s\u00a0]/g, ' ')),
    rounding: 0.5 * lastDigit,
  };
}

const billions: Unit = { dimension: 'plain', scale: 1e9 };

/** "1.1B parameters", "an 8B model" are counts and not bytes. */
const isCount = ({ 0: match, index, input }: RegExpExecArray): boolean =>
  match.endsWith('B') &&
  /^\d*(?:\.\d+)?\s?B$/.test(match) &&
  /^[\s-]*(?:param|weight|model|token)/i.test(input.slice(index + match.length));

const smallNumerals =
  'zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen'.split(
    ' ',
  );
const tens = 'twenty thirty forty fifty sixty seventy eighty ninety'.split(' ');
const numeral = [...smallNumerals, ...tens, 'hundred'].join('|');
/** "twenty-three milliseconds", "ten times": a number in words with a unit. */
const wordPattern = new RegExp(
  String.raw`(?<![\p{L}\p{Nd}_-])((?:${numeral})(?:[\s-](?:and[\s-])?(?:${numeral})){0,7})[\s\u00a0-](${unitPattern}|times)(?![\p{L}\p{Nd}_])`,
  'giu',
);

function wordsOf(text: string): Omit<WrittenNumber, 'text'>[] {
  return [...text.matchAll(wordPattern)].map((match) => {
    const value = (match[1] ?? '')
      .toLowerCase()
      .split(/[\s-]+/)
      .reduce((sum, word) => {
        if (word === 'hundred') return Math.max(1, sum) * 100;
        const unit = smallNumerals.indexOf(word);
        return sum + (unit >= 0 ? unit : 10 * (tens.indexOf(word) + 2) * Number(tens.includes(word)));
      }, 0);
    const word = match[2]!.replaceAll(/[\s\u00a0]/g, ' ');
    return {
      start: match.index,
      end: match.index + match[0].length,
      value,
      unit: word.toLowerCase() === 'times' ? { dimension: 'ratio' as const, scale: 1 } : unitOf(word),
      rounding: 0.5,
    };
  });
}

/** "10 to 23 ms", "10–23 ms", "between 10 and 23 ms": both numbers have the unit after the second one. */
function ranges(found: readonly WrittenNumber[], text: string): WrittenNumber[] {
  return found.map((writtenNumber, index) => {
    const next = found[index + 1];
    if (writtenNumber.unit !== null || !next || next.unit === null) return writtenNumber;
    const between = text.slice(writtenNumber.end, next.start);
    return /^\s*(?:[-–—…]|to|and|or|bis|→|->)\s*$/i.test(between)
      ? { ...writtenNumber, unit: next.unit }
      : writtenNumber;
  });
}

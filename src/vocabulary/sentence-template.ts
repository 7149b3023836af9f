import type { Issue } from '../model/document.js';
import { type IssueCode, launchIssues } from '../model/issue-codes.js';
import type { Sentence } from '../model/sentence-template.js';
import { formatCount, formatQuantity } from './format.js';

/** An argument with its unit, which is part of the template: sentence`took ${quantity(4, 'ms')}`. */
export const quantity = (n: number, unit: string) => ({ n, unit });

/** A sentence with its template and arguments: sentence`${3} ranges were never closed`. A number alone is a count. */
export function sentence(
  parts: TemplateStringsArray,
  ...args: (number | string | ReturnType<typeof quantity>)[]
): { text: string; sentence: Sentence } {
  const template = parts.reduce((text, part, index) => {
    const arg = args[index - 1];
    return `${text}{${typeof arg === 'object' ? arg.unit : ''}}${part}`;
  });
  const result = { template, args: args.map((arg) => (typeof arg === 'object' ? arg.n : arg)) };
  return { text: fillTemplate(result), sentence: result };
}

const fillTemplate = ({
  template,
  args,
}: {
  template: string;
  args: readonly (number | string | Range)[];
}) => {
  let next = 0;
  return template.replaceAll(/\{([^{}]*)\}/g, (_, unit: string) => {
    const arg = args[next++]!;
    if (typeof arg === 'string') return arg;
    if (typeof arg === 'number') return numberText(arg, unit);
    const [low, high] = [numberText(arg.low, unit), numberText(arg.high, unit)];
    return low === high ? low : `${low} to ${high}`;
  });
};

function numberText(value: number, unit: string): string {
  return unit === '' ? formatCount(value) : formatQuantity(value, unit);
}

interface Range {
  low: number;
  high: number;
}

interface IssueText {
  code?: IssueCode;
  text: string;
  sentence?: Sentence | undefined;
}

const writtenNumber = /\d+(?:\u00a0\d{3})*(?:\.\d+)?/g;
const valueOf = (written: string): number => Number(written.replaceAll('\u00a0', ''));

const isLaunchIssue = (code: IssueCode | undefined): boolean => code !== undefined && launchIssues.has(code);

/** Equal for sentences that differ only in their numbers; for other texts without arguments, their text. */
export function sentenceKey({ code, text, sentence }: IssueText): string {
  if (sentence)
    return JSON.stringify([sentence.template, sentence.args.filter((arg) => typeof arg === 'string')]);
  return isLaunchIssue(code) ? text.replaceAll(writtenNumber, '{}') : text;
}

/** Whether the text of an issue has its count. */
export const statesCount = ({
  code,
  count,
  text,
  sentence,
}: IssueText & { count?: number | undefined }): boolean =>
  count !== undefined &&
  (sentence
    ? sentence.args.includes(count)
    : isLaunchIssue(code) &&
      [...text.matchAll(writtenNumber)].some(([written]) => valueOf(written) === count));

/** One text for sentences with the same key: a number that differs becomes "1.0 % to 1.1 %". */
export function rangedText(texts: readonly IssueText[]): string {
  const [first] = texts;
  if (!first?.sentence) return rangedNumbers(texts.map(({ text }) => text));
  const args = first.sentence.args.map((firstArg, index) => {
    const numbers = texts
      .map(({ sentence }) => sentence?.args[index])
      .filter((arg) => typeof arg === 'number');
    const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
    return typeof firstArg === 'string' || low === high ? firstArg : { low, high };
  });
  return fillTemplate({ template: first.sentence.template, args });
}

/** The first of these texts, which differ only in numbers (issues of older sessions), with the range of each. */
function rangedNumbers(texts: readonly string[]): string {
  const numbers = texts.map((text) => [...text.matchAll(writtenNumber)].map(([written]) => written));
  let next = 0;
  return (texts[0] ?? '').replaceAll(writtenNumber, () => {
    const index = next++;
    const sorted = numbers.map((row) => row[index]!).toSorted((a, b) => valueOf(a) - valueOf(b));
    const [low, high] = [sorted[0]!, sorted.at(-1)!];
    return low === high ? low : `${low} to ${high}`;
  });
}

/** Issues of several places: those that differ only in their numbers are merged, with the places that have them. */
export function issuesAt(all: readonly { issue: Issue; prefix?: string; scope: string | null }[]): Issue[] {
  const groups = new Map<string, (typeof all)[number][]>();
  for (const entry of all) {
    const key = [entry.issue.severity, entry.prefix, entry.issue.code, sentenceKey(entry.issue)].join('\n');
    groups.set(key, [...(groups.get(key) ?? []), entry]);
  }
  return [...groups.values()].map((group): Issue => {
    const { issue, prefix = '' } = group[0]!;
    const scopes = [...new Set(group.flatMap((entry) => entry.scope ?? []))];
    const between = scopes.some((place) => place.includes(',')) ? '; ' : ', ';
    const where =
      scopes.length > 4
        ? `${scopes.slice(0, 3).join(between)} and ${scopes.length - 3} more`
        : scopes.join(between);
    const text = rangedText(group.map((entry) => entry.issue));
    return {
      severity: issue.severity,
      code: issue.code,
      text: `${prefix}${where === '' ? text : text.replace(/(\.?)$/, ` (${where})$1`)}`,
    };
  });
}

import type { Issue } from '../model/document.js';
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
  text: string;
  sentence?: Sentence | undefined;
}

/** Equal for sentences that differ only in their numbers; for sentences without arguments, their text. */
export const sentenceKey = ({ text, sentence }: IssueText): string =>
  sentence
    ? JSON.stringify([sentence.template, sentence.args.filter((arg) => typeof arg === 'string')])
    : text;

/** One text for sentences with the same key: a number that differs becomes "1.0 % to 1.1 %". */
export function rangedText(texts: readonly IssueText[]): string {
  const [first] = texts;
  if (!first?.sentence) return first?.text ?? '';
  const args = first.sentence.args.map((firstArg, index) => {
    const numbers = texts
      .map(({ sentence }) => sentence?.args[index])
      .filter((arg) => typeof arg === 'number');
    const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
    return typeof firstArg === 'string' || low === high ? firstArg : { low, high };
  });
  return fillTemplate({ template: first.sentence.template, args });
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

import type { AnalyzeResult } from '../../model/documents/analyze.js';
import { safeText } from '../safe-text.js';
import { formatCount, unbroken } from '../format.js';
import { colour } from './colour.js';
import { hanging, inert, readingWidth, withPlainSpaces } from './text.js';

/** What `inferscope analyze` prints: the answer, the queries that it cites, and what it cost. */
export function analyzeText(
  result: AnalyzeResult,
  columns: number,
  { sql = true }: { sql?: boolean } = {},
): string {
  const width = readingWidth(columns);
  const cited = new Set([...result.answer.matchAll(/\bq\d+\b/g)].map(([id]) => id));
  const queries = result.queries.filter(({ id, input }) => cited.has(id) && input !== null);
  const given = cited.has('q0') ? result.queries.find(({ id }) => id === 'q0') : undefined;
  const lines = [
    ...answerLines(result.answer, width),
    ...(queries.length > 0 || given ? [''] : []),
    ...(given ? [colour.dim(`  [q0] ${given.tool}, as it was given with the question`)] : []),
    ...queries.flatMap((query) => queryLines(query, width)),
    ...(sql && queries.some(({ input }) => (input ?? '').length > queryCharacters)
      ? ['', '  --sql n, typed behind the same command, prints the whole query [qn]']
      : []),
    ...checkedLines(result, width),
  ];
  return withPlainSpaces(lines.join('\n'));
}

/** More of a query is for --sql and --json. */
const queryCharacters = 200;

function queryLines({ id, tool, input, error }: AnalyzeResult['queries'][number], width: number): string[] {
  const text = inert(input ?? '');
  const shown = text.length > queryCharacters ? tailOf(text) : text;
  const what = `${tool === 'sql' ? '' : `${tool}: `}${shown}${error === null ? '' : ' (failed)'}`;
  return hanging(`  [${id}] `, what, width).map((line) => colour.dim(line));
}

/** Long queries begin with the same definitions of stages: what they ask stands at their end. */
function tailOf(text: string): string {
  const from = Math.max(text.lastIndexOf(' SELECT ') + 1, 0);
  const own = text.slice(from, from + queryCharacters - 2);
  return `${from > 0 ? '… ' : ''}${own}${from + own.length < text.length ? '…' : ''}`;
}

/** Lists and paragraphs as they stand, wrapped; lines of code stay whole. */
export function answerLines(answer: string, width: number): string[] {
  let code = false;
  return answer.split('\n').flatMap((raw) => {
    const line = inert(raw.replaceAll('\t', '    '));
    if (/^\s*```/.test(line)) {
      code = !code;
      return [];
    }
    if (code) return [`    ${line}`];
    if (line.trim() === '') return [''];
    const [, lead = '', rest = ''] = /^(\s*(?:[-*•]\s+|\d+[.)]\s+)?)(.*)$/.exec(line) ?? [];
    return hanging(`  ${lead}`, unbroken(rest.replaceAll('**', '')), width);
  });
}

function checkedLines(
  { answered_by, claims, unverified, usage, model }: AnalyzeResult,
  width: number,
): string[] {
  if (answered_by !== 'model' || !usage) return [];
  const { steps, input_tokens: input, output_tokens: output, cost_usd: cost } = usage;
  const checked =
    claims.length === 0
      ? 'no numbers to check'
      : `${claims.length - unverified} of ${claims.length} numbers verified${unverified > 0 ? `, ${unverified} marked (unverified)` : ''}`;
  const tokens =
    input === null || output === null
      ? 'tokens not told'
      : `${formatCount(input)} + ${formatCount(output)} tokens`;
  const price = cost.value === null ? `cost not known: ${cost.reason.text}` : `${dollars(cost.value)}`;
  return [
    '',
    ...hanging(
      '  ',
      `${checked} · ${inert(model ?? '')}, ${steps} ${steps === 1 ? 'reply' : 'replies'}, ${tokens} · ${price}`,
      width,
    ).map((line) => colour.dim(line)),
  ];
}

const dollars = (usd: number): string => `$${usd >= 0.01 ? usd.toFixed(2) : usd.toPrecision(2)}`;

/** `analyze --dry-run`: the request part by part, nothing left out and nothing wrapped. */
export function requestText({ url, body }: { url: string; body: Record<string, unknown> }): string {
  const { messages, tools, system, ...rest } = body;
  const said = [
    ...(system === undefined ? [] : [{ role: 'system', content: system }]),
    ...(Array.isArray(messages) ? (messages as { role?: unknown; content?: unknown }[]) : []),
  ];
  const part = (title: string, text: string) => `${colour.bold(`--- ${title}`)}\n${safeText(text)}`;
  return [
    part('to', `POST ${url}`),
    part('settings', JSON.stringify(rest, null, 2)),
    ...said.map(({ role, content, ...more }) =>
      part(
        String(role),
        [textOf(content), Object.keys(more).length > 0 ? JSON.stringify(more, null, 2) : '']
          .filter(Boolean)
          .join('\n'),
      ),
    ),
    part('tools', JSON.stringify(tools ?? [], null, 2)),
  ].join('\n\n');
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return JSON.stringify(content ?? '', null, 2);
  return content
    .map((one: { type?: unknown; text?: unknown }) =>
      one.type === 'text' && typeof one.text === 'string' ? one.text : JSON.stringify(one, null, 2),
    )
    .join('\n');
}

import type { AnalyzeResult } from '../model/documents/analyze.js';
import type { Document } from '../model/document.js';
import type { Block, Part, Value, View } from './block.js';
import { plural, formatNumber } from '../vocabulary/format.js';
import { lengthWords } from '../vocabulary/workload.js';

/** An answer about a session, the queries that it cites, and what it cost. */
export function analyzeView(document: Document<AnalyzeResult>): View {
  const { data, issues } = document;
  const { id, name, title } = data.session;
  return {
    command: 'analyze',
    title: name ?? title,
    document,
    session: { id, started_at: '' },
    lead: [...answerBlocks(data), { type: 'issues', issues }],
    sections: [],
  };
}

/** The answer, the queries that it cites, and what it cost. */
export function answerBlocks(data: AnalyzeResult): Block[] {
  return [
    ...textBlocks(data.answer),
    {
      type: 'facts',
      items: citedQueries(data).map((query) => ({ name: `[${query.id}]`, text: dim(queryText(query)) })),
    },
    { type: 'notes', items: costText(data).map(dim) },
  ];
}

const dim = (text: string): Value => ({ text, tone: 'dim' });

/** Paragraphs and lists with their lines unchanged; code blocks as preformatted lines. */
function textBlocks(answer: string): Block[] {
  return answer.split(/^\s*```.*$/m).flatMap((part, index): Block[] =>
    index % 2 === 1
      ? [{ type: 'lines', text: part.replace(/^\n|\n$/g, '') }]
      : part
          .split(/\n\s*\n/)
          .map((paragraph) => paragraph.split('\n').filter((line) => line.trim() !== ''))
          .filter((lines) => lines.length > 0)
          .map((lines) => ({ type: 'notes', items: lines.map((line) => line.replaceAll('**', '')) })),
  );
}

type Query = AnalyzeResult['queries'][number];

/** Longer queries are only in --sql and --json: a truncated query can be neither read nor run. */
const maxQueryCharacters = 200;

/** The queries that the answer cites; q0 is given with the question. */
function citedQueries({ answer, queries }: AnalyzeResult): Query[] {
  const cited = new Set([...answer.matchAll(/\bq\d+\b/g)].map(([id]) => id));
  return queries.filter(({ id, input }) => cited.has(id) && (input !== null || id === 'q0'));
}

function queryText({ id, tool, input, error }: Query): string {
  if (input === null || id === 'q0') return `${tool}, provided with the question`;
  const text = input.length > maxQueryCharacters ? `a long query, printed with --sql ${id.slice(1)}` : input;
  return `${tool === 'sql' ? '' : `${tool}: `}${text}${error === null ? '' : ' (failed)'}`;
}

function costText({ answered_by, claims, unverified, usage, model }: AnalyzeResult): string[] {
  if (answered_by !== 'model' || !usage) return [];
  const { steps, input_tokens: input, output_tokens: output, cost_usd: cost } = usage;
  const verified = `${claims.length - unverified} of ${claims.length} numbers verified${unverified > 0 ? `, ${unverified} marked (unverified)` : ''}`;
  return [
    [
      claims.length === 0 ? 'no numbers to check' : verified,
      `${model}, ${plural(steps, 'reply', 'replies')}, ${input === null || output === null ? 'tokens not reported' : lengthWords(input, output)}`,
      cost.value === null ? `cost unknown: ${cost.reason.text}` : dollars(cost.value),
    ].join(' · '),
  ];
}

const dollars = (usd: number): string => `$${formatNumber(usd, 2)}`;

interface Request {
  url: string;
  body: Record<string, unknown>;
}

/** `analyze --dry-run`: every part of the request, neither shortened nor wrapped. */
export function requestView(document: Document<Request>): View {
  const { url, body } = document.data;
  const { messages, tools, system, ...settings } = body;
  const conversation = [
    ...(system === undefined ? [] : [{ role: 'system', content: system }]),
    ...(Array.isArray(messages) ? (messages as { role?: unknown; content?: unknown }[]) : []),
  ];
  const part = (text: Part, ...lines: string[]): Block[] => [
    { type: 'heading', text },
    ...lines.map((line) => ({ type: 'lines' as const, text: line })),
  ];
  return {
    command: 'analyze --dry-run',
    title: `POST ${url}`,
    document,
    session: { id: null, started_at: '' },
    lead: [
      ...part('settings', JSON.stringify(settings, null, 2)),
      ...conversation.flatMap(({ role, content, ...more }) =>
        part(
          String(role),
          ...contentLines(content),
          ...(Object.keys(more).length > 0 ? [JSON.stringify(more, null, 2)] : []),
        ),
      ),
      ...part('tools', JSON.stringify(tools ?? [], null, 2)),
    ],
    sections: [],
  };
}

function contentLines(content: unknown): string[] {
  if (typeof content === 'string') return [content];
  if (!Array.isArray(content)) return [JSON.stringify(content ?? '', null, 2)];
  return content.map((part: { type?: unknown; text?: unknown }) =>
    part.type === 'text' && typeof part.text === 'string' ? part.text : JSON.stringify(part, null, 2),
  );
}

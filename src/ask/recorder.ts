import type { ToolSet } from 'ai';
import type { AnswerQuery } from '../model/documents/analyze.js';
import { InferscopeError, messageOf } from '../model/errors.js';
import { limitConcurrency } from './budget.js';
import { wrapData } from './prompt.js';
import type { Redactor } from './redactor.js';
import type { AskTool, ToolContext } from './tools/tool.js';

/** Maximum characters of one result; a model that needs more must query less at a time. */
const maxCharacters = 24_000;

/** A query with the redacted result that the model received; an answer may state only these numbers. */
export interface RecordedQuery extends AnswerQuery {
  data: unknown;
}

interface Recorder {
  queries: RecordedQuery[];
  /** Runs one tool; failures are returned to the model, which may retry. @returns the text for the model */
  call(tool: AskTool, input: unknown): Promise<string>;
  /** Records a call with an unknown tool or invalid input. */
  refused(tool: string, input: unknown, error: unknown): void;
}

/**
 * @param callsAtOnce maximum concurrent calls: each SQL call is a process
 * @param before number of queries of the conversation so far
 */
export function recorder(
  context: ToolContext,
  redact: Redactor,
  callsAtOnce: number,
  before: number,
): Recorder {
  const limitCalls = limitConcurrency(callsAtOnce);
  const queries: RecordedQuery[] = [];
  const add = (query: Omit<RecordedQuery, 'id'>): RecordedQuery => {
    const recorded = { id: `q${before + queries.length + 1}`, ...query };
    queries.push(recorded);
    return recorded;
  };
  return {
    queries,
    async call(tool, input) {
      const inputLine = redact.text(tool.inputLine(input as never) ?? '') || null;
      const query = add({ tool: tool.name, input: inputLine, rows: null, error: null, data: null });
      try {
        const { data, rows } = await limitCalls(() => tool.run(input as never, context));
        query.data = cut(redact.json(data));
        query.rows = rows;
      } catch (error) {
        query.error = redact.text(whyOf(error)).slice(0, 1000);
        query.data = { error: query.error };
      }
      return wrapData(query.id, query.data);
    },
    refused(tool, input, error) {
      const text = typeof input === 'string' ? input : (JSON.stringify(input) ?? '');
      add({
        tool: redact.text(tool).slice(0, 80),
        input: redact.text(text).slice(0, 400),
        rows: null,
        error: redact.text(messageOf(error)).slice(0, 400),
        data: null,
      });
    },
  };
}

const whyOf = (error: unknown): string =>
  error instanceof InferscopeError ? `${error.parts.what}: ${error.parts.why}` : messageOf(error);

/** Shortens the longest list by whole entries until the result fits, so that it stays valid JSON. */
function cut(data: unknown): unknown {
  let shortened = data;
  for (let size = sizeOf(shortened); size > maxCharacters; size = sizeOf(shortened)) {
    const [key, list] = longestList(shortened) ?? [];
    if (key === undefined || list === undefined || list.length === 0)
      return { note: `the result is too long (${size} characters): request less` };
    const firstEntries = list.slice(
      0,
      Math.min(list.length - 1, Math.floor((list.length * maxCharacters) / size)),
    );
    shortened = { ...(shortened as object), [key]: firstEntries, cut: `${key} is cut to its first entries` };
  }
  return shortened;
}

const sizeOf = (data: unknown): number => JSON.stringify(data)?.length ?? 0;

function longestList(data: unknown): [string, unknown[]] | null {
  if (data === null || typeof data !== 'object') return null;
  const lists = Object.entries(data).filter((entry): entry is [string, unknown[]] => Array.isArray(entry[1]));
  return lists.sort((a, b) => sizeOf(b[1]) - sizeOf(a[1]))[0] ?? null;
}

/** The tools as the `ai` SDK expects them, each reporting to the recorder. */
export async function toolSet(tools: readonly AskTool[], record: Recorder): Promise<ToolSet> {
  const { tool: define } = await import('ai');
  return Object.fromEntries(
    tools.map((tool) => [
      tool.name,
      define({
        description: tool.description,
        inputSchema: tool.input,
        execute: (input: unknown) => record.call(tool, input),
      }),
    ]),
  );
}

/** The query without its result, as documents list it. */
export function withoutData({ id, tool, input, rows, error }: RecordedQuery): AnswerQuery {
  return { id, tool, input, rows, error };
}

import { leadStage } from '../../advice/explain/sentences.js';
import type { CapturesResult } from '../../model/documents/by-kind.js';
import type { ExplainResult, StageWaterfall } from '../../model/documents/explain.js';
import { InferscopeError } from '../../model/errors.js';
import { hasRows } from '../../model/subjects.js';
import type { Home } from '../../session/home.js';
import type { Session } from '../../session/open.js';
import type { SessionDatabase } from '../../session/query.js';
import { instanceWord, stageLabel } from '../../vocabulary/stages.js';
import type { ParsedQuestion } from './parsed-question.js';
import { pointLabel } from '../../vocabulary/bench.js';

/** Data for answers without a model. */
export interface StoredFacts {
  session: Session;
  /** Home with other sessions. */
  home: Home;
  database: SessionDatabase;
  explained: ExplainResult;
  question: ParsedQuestion;
  /** Timeline and counters, computed once; null if the session has none. */
  captures(): Promise<Pick<CapturesResult, 'trace' | 'counters'>>;
}

/** One part of an answer and its source. */
export interface StoredPart {
  text: string;
  /** Query of its numbers for `inferscope sql`; null if an analysis computed them, which `from` names. */
  sql: string | null;
  from: string;
  /** Command that shows that analysis; null for the default one of `from`. */
  command?: string;
  rows: number | null;
}

export interface TopicAnswer {
  /** One or two sentences with the number; null if not known. */
  direct: StoredPart | null;
  evidence: readonly StoredPart[];
  /** Why the answer is unknown, and the command that measures it; null if it is known. */
  notKnown: { why: string; capture: string | null } | null;
}

export const known = (direct: StoredPart, evidence: readonly StoredPart[] = []): TopicAnswer => ({
  direct,
  evidence,
  notKnown: null,
});

export const notKnown = (
  why: string,
  capture: string | null,
  evidence: readonly StoredPart[] = [],
): TopicAnswer => ({ direct: null, evidence, notKnown: { why, capture } });

/** A part taken from an analysis, without its own SQL. */
export const partFrom = (
  from: string,
  text: string,
  rows: number | null = 1,
  command?: string,
): StoredPart => ({ text, sql: null, from, rows, ...(command === undefined ? {} : { command }) });

/** Commands that record missing data. */
export const capture = {
  timeline: 'inferscope run --evaluator none,nsys -- <command>',
  counters: 'inferscope run --evaluator nsys,ncu -- <command>',
  operators: 'inferscope run --evaluator torch -- <command>',
  memory: 'inferscope memory --model <model>',
  bench: 'inferscope bench throughput --model <model> --batch-size 1,4,8,16,32',
  sequence: 'inferscope bench sequence --model <model>',
  latency: 'inferscope bench latency --model <model> --runs 20',
  serve: 'inferscope bench serve <http://host:port>',
  monitor: 'inferscope monitor --record --while -- <command>',
} as const;

/** The stages of the kinds named in the question, else of the leading kind. */
export function questionStages({ explained, question }: StoredFacts): StageWaterfall[] {
  const named = explained.stages.filter(({ kind }) => question.stages.includes(kind));
  // A question about whole requests uses the lead stage if the session has no requests.
  const missing = question.stages.filter((kind) => kind !== 'request');
  if (named.length > 0 || missing.length > 0) return named;
  const lead = leadStage(explained.stages);
  return lead ? explained.stages.filter(({ kind }) => kind === lead.kind) : [];
}

/** "The session has no decode: …" if it has none of the stages in the question, or no stages; else null. */
export function lacksStage(facts: StoredFacts): TopicAnswer | null {
  const { explained, question } = facts;
  if (questionStages(facts).length > 0) return null;
  const why =
    explained.without_waterfall.find(({ stage }) => stage === null || question.stages.includes(stage))
      ?.reason ??
    (explained.stages.length > 0
      ? `it has ${[...new Set(explained.stages.map(stageLabel))].join(', ')} only`
      : 'no stages are marked');
  const text =
    question.stages.length > 0
      ? `The session has no ${question.stages.map((kind) => stageLabel({ kind, name: null })).join(' or ')}: ${why}.`
      : `Not known: ${why}.`;
  return notKnown(text, capture.timeline);
}

/** "A decode step", "the whole capture", "a decode step at batch 8, 128 in + 64 out". */
export const instanceOf = ({
  kind,
  point,
  from_schedule: fromSchedule,
}: Pick<StageWaterfall, 'kind' | 'point' | 'from_schedule'>): string =>
  `${instanceWord(kind, fromSchedule)}${point === null ? '' : ` at ${pointLabel(point)}`}`;

/** Runs an analysis that may not apply to a session: then null. */
export async function orNull<T>(work: () => Promise<T>): Promise<T | null> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof InferscopeError) return null;
    throw error;
  }
}

export const hasTable = ({ session }: Pick<StoredFacts, 'session'>, table: string): boolean =>
  hasRows(session.manifest, table);

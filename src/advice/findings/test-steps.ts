import type { Row } from '../../model/tables.js';
import type { SessionDatabase } from '../../session/query.js';
import { gap, kernel, type Rows, sessionOf, stage, us } from '../../facts/trace/test-hand.js';
import { traceScope } from '../../facts/derived/scope.js';
import { findingContext } from './findings.js';
import { type TitledDraft, withTitle } from './ranking.js';
import type { FindingContext, Rule, RuleOutcome } from './rule.js';

/** A part of a step, µs. Parts follow one another; only an API call takes no time of its own: it starts `from` after the start of the step. */
export type Part =
  | { kernel: number; more?: Row<'kernels'> }
  | { copy: number; more: Row<'copies'> }
  | { idle: Record<string, number> }
  | { call: string; from: number; takes: number };

/** Rows of consecutive steps; `partsOf` returns the parts of the step with an index. */
export function stepRows(kind: string, steps: number, partsOf: (step: number) => Part[]): Required<Rows> {
  const rows = {
    stages: [] as Row<'stages'>[],
    kernels: [] as Row<'kernels'>[],
    copies: [] as Row<'copies'>[],
    gaps: [] as Row<'gaps'>[],
    api_calls: [] as Row<'api_calls'>[],
  };
  let now = 0;
  for (let step = 0; step < steps; step++) {
    const start = now;
    for (const part of partsOf(step)) {
      if ('kernel' in part) {
        rows.kernels.push(kernel(step, now, part.kernel, part.more));
        now += part.kernel;
      } else if ('copy' in part) {
        rows.copies.push({
          stage_id: step,
          start_ns: now * us,
          dur_ns: part.copy * us,
          exclusive_ns: part.copy * us,
          api_start_ns: now * us,
          api_dur_ns: part.copy * us,
          correlation: 1_000_000 + rows.copies.length,
          ...part.more,
        });
        now += part.copy;
      } else if ('idle' in part) {
        const row = gap(now, part.idle);
        rows.gaps.push({ ...row, stage_id: step });
        now += (row.dur_ns ?? 0) / us;
      } else {
        rows.api_calls.push({
          name: part.call,
          start_ns: (start + part.from) * us,
          dur_ns: part.takes * us,
          stage_id: step,
          correlation: 2_000_000 + rows.api_calls.length,
        });
      }
    }
    const device = { device_start_ns: start * us + 1, device_end_ns: now * us };
    rows.stages.push(stage(step, kind, start, now, { step_index: step, ...device }));
  }
  return rows as Required<Rows>;
}

export const repeated = (times: number, parts: Part[]): Part[] =>
  Array.from({ length: times }, () => parts).flat();

const openDatabases: SessionDatabase[] = [];

/** The context of rules for these rows, without a waterfall. */
export async function contextOf(rows: Rows): Promise<FindingContext> {
  const session = await sessionOf(rows);
  const database = await session.connect();
  openDatabases.push(database);
  return findingContext(session, database, await traceScope(database, session.manifest), []);
}

export async function closeAll(): Promise<void> {
  for (const database of openDatabases.splice(0)) await database.close();
}

/** Ids of those of the rules that fire. */
export const firingOf =
  (rules: readonly Rule[]) =>
  async (context: FindingContext): Promise<string[]> => {
    const ids: string[] = [];
    for (const rule of rules) if ((await rule.find(context)).outcome === 'fired') ids.push(rule.id);
    return ids;
  };

/** The findings; fails with the rule's reason without one. Titles have no share of the stage, because its time is not given. */
export function allFired(outcome: RuleOutcome): TitledDraft[] {
  if (outcome.outcome !== 'fired') throw new Error(`${outcome.outcome}: ${outcome.why}`);
  return outcome.findings.map((draft) => withTitle(draft, []));
}

/** The first finding. */
export const fired = (outcome: RuleOutcome): TitledDraft => allFired(outcome)[0]!;

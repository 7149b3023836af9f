import { type StageKind, stageKinds } from '../../model/record.js';
import type { SessionDatabase } from '../../session/query.js';
import { stageLabels } from '../../vocabulary/stages.js';
import type { Steps } from './shown.js';
import type { Timeline } from './timeline.js';

const maxSteps = 2000;

/** Stages without warm-up, the model's steps first; of nested ranges of one phase only the outer one. */
export async function stepsOf(database: SessionDatabase, { execution, from }: Timeline): Promise<Steps[]> {
  const rows = await database.query<{ kind: string; start_ns: number; end_ns: number }>(
    `SELECT kind, start_ns, end_ns FROM stages WHERE execution_id = $1 AND stage_id = phase_id AND NOT coalesce(warmup, false) AND end_ns > start_ns ORDER BY start_ns`,
    [execution],
  );
  const kinds = new Map<string, { start: number; end: number }[]>();
  for (const { kind, start_ns, end_ns } of rows) {
    const list = kinds.get(kind) ?? [];
    list.push({ start: start_ns - from, end: end_ns - from });
    kinds.set(kind, list);
  }
  const order = (kind: string): number => stageKinds.indexOf(kind as StageKind);
  const sortedKinds = [...kinds].sort(([a], [b]) => order(a) - order(b));
  return sortedKinds.map(([kind, list]) => {
    const sorted = list.toSorted((a, b) => a.end - a.start - (b.end - b.start));
    return {
      kind,
      label: stageLabels[kind as 'decode'] ?? kind,
      count: list.length,
      list: list.slice(0, maxSteps),
      median: sorted[Math.floor((sorted.length - 1) / 2)]!,
      slowest: sorted.at(-1)!,
    };
  });
}

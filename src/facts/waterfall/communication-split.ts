import { stepKinds } from '../../model/documents/trace-phase.js';
import type { PhaseKind } from '../../model/documents/trace.js';
import { callLossesSql } from '../collectives/job.js';
import { collectiveSource } from '../trace/collectives.js';
import type { TraceScope } from '../trace/scope.js';
import type { Part } from './split.js';

/** Parts of a rank's exposed communication that are waiting, 0 to 1; the rest is the exchange (wire). */
interface WaitShares {
  skew: number;
  imbalance: number;
}

/** For each kind of step of the focus's rank; empty where the calls of its job are not recorded (import --ranks). */
export async function waitShares(
  { database, source }: TraceScope,
  kinds: ReadonlySet<string>,
): Promise<Map<string, WaitShares>> {
  const found = new Map<string, WaitShares>();
  const { attribution, executions, focus } = source;
  const captures = (
    executions.find(({ execution_id }) => execution_id === attribution.execution_id)?.captures ?? []
  ).map(({ capture_id }) => capture_id);
  const { recorded } = await collectiveSource(database, [attribution.capture_id]);
  if (!recorded || captures.length < 2 || focus.rank === null) return found;
  for (const kind of kinds) {
    if (!waiting.has(kind)) continue;
    const [row] = await database.query<{ skew: number | null; imbalance: number | null }>(
      `SELECT sum(skew_ns) / sum(exposed_ns) AS skew, sum(imbalance_ns) / sum(exposed_ns) AS imbalance
       FROM (${callLossesSql(captures, kind as PhaseKind)}) WHERE rank = ${focus.rank} AND exposed_ns > 0`,
    );
    if (row && row.skew !== null) found.set(kind, { skew: row.skew, imbalance: row.imbalance ?? 0 });
  }
  return found;
}

const waiting: ReadonlySet<string> = new Set(stepKinds);

/** The same parts, exposed communication by what it is: exchange, waiting for late ranks, waiting for uneven experts. */
export function withWaits(parts: readonly Part[], shares: WaitShares | undefined): Part[] {
  if (!shares) return [...parts];
  return parts.flatMap((part) => {
    if (part.id !== 'exposed_comm') return [part];
    const skew = shares.skew * part.ms;
    const imbalance = shares.imbalance * part.ms;
    return [
      { id: 'exposed_comm.wire', ms: part.ms - skew - imbalance },
      { id: 'exposed_comm.skew', ms: skew },
      { id: 'exposed_comm.imbalance', ms: imbalance },
    ];
  });
}

import { jointKinds } from '../../model/documents/trace-phase.js';
import type { PhaseKind } from '../../model/documents/trace.js';
import { callLossesSql } from '../collectives/job.js';
import {
  collectiveSource,
  collectivesSql,
  type RankCollectives,
  waitingOfRanks,
} from '../trace/collectives.js';
import type { TraceScope } from '../trace/scope.js';
import type { Part } from './split.js';

const jointKindSet: ReadonlySet<string> = new Set(jointKinds);

/** Shares of a rank's exposed communication spent waiting, 0 to 1. The remainder is the exchange (wire). */
interface WaitShares {
  skew: number;
  imbalance: number;
}

/**
 * Wait shares of the focused rank for each kind of step, from recorded calls, else from kernels of the same name. Empty
 * with one rank or when kernels cannot be paired.
 */
export async function waitShares(
  scope: TraceScope,
  kinds: ReadonlySet<string>,
): Promise<Map<string, WaitShares>> {
  const sharesByStage = new Map<string, WaitShares>();
  const { attribution, executions, focus } = scope.source;
  const captures = (
    executions.find(({ execution_id }) => execution_id === attribution.execution_id)?.captures ?? []
  ).map(({ capture_id }) => capture_id);
  const source = await collectiveSource(scope.database, captures);
  if (source.ranks < 2 || focus.rank === null) return sharesByStage;
  for (const kind of kinds) {
    if (!jointKindSet.has(kind)) continue;
    const shares = source.recorded
      ? await waitSharesOfCalls(scope, captures, kind as PhaseKind)
      : await waitSharesOfKernels(scope, captures, { kind: kind as PhaseKind, ranks: source.ranks });
    if (shares) sharesByStage.set(kind, shares);
  }
  return sharesByStage;
}

async function waitSharesOfCalls(
  { database, source: { focus } }: TraceScope,
  captures: readonly string[],
  kind: PhaseKind,
): Promise<WaitShares | null> {
  const [row] = await database.query<{ skew: number | null; imbalance: number | null }>(
    `SELECT sum(skew_ns) / sum(exposed_ns) AS skew, sum(imbalance_ns) / sum(exposed_ns) AS imbalance
     FROM (${callLossesSql(captures, kind)}) WHERE rank = ${focus.rank} AND exposed_ns > 0`,
  );
  return row && row.skew !== null ? { skew: row.skew, imbalance: row.imbalance ?? 0 } : null;
}

async function waitSharesOfKernels(
  { database, source: { focus } }: TraceScope,
  captures: readonly string[],
  { kind, ranks }: { kind: PhaseKind; ranks: number },
): Promise<WaitShares | null> {
  const rows = await database.query<RankCollectives>(
    collectivesSql(captures, kind, { instances: 1, ranks, recorded: false }),
  );
  const rankWaits = waitingOfRanks(rows).find(
    ({ rank, device }) => rank === focus.rank && (focus.device === null || device === focus.device),
  );
  if (!rankWaits || rankWaits.unpaired_ms > 0 || rankWaits.exposed_ms === 0) return null;
  return { skew: rankWaits.exposed_waiting_ms / rankWaits.exposed_ms, imbalance: 0 };
}

/**
 * The same parts, with exposed communication split into exchange, waiting for late ranks and waiting for uneven
 * experts.
 */
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

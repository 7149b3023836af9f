import type { ApiCall, PhaseKind } from '../../model/documents/trace.js';
import type { Session } from '../../session/open.js';
import { apiCalls } from './api-calls.js';
import type { TraceScope } from './scope.js';
import { scopeOn } from '../derived/scope.js';
import { queryDurations, spreadColumns } from './spread.js';

/** From the API call's return to the kernel's begin; null for a kernel that began before its call returned. */
const queue = 'CASE WHEN start_ns > api_start_ns + api_dur_ns THEN start_ns - api_start_ns - api_dur_ns END';

/** Kernels of a name with a recorded launch, in CUDA graphs or not; further columns: the spreads total_, api_, queue_, kernel_. */
export interface LaunchedRow {
  kernel: string | null;
  in_graph: boolean;
  short_name: string | null;
  /** Of one of the launches. */
  correlation: number | null;
  pid: number | null;
}

/** What the summary says with medians: a median needs every value, which takes longer than all else. */
export interface Spreads {
  /** The longest first. */
  launched: LaunchedRow[];
  /** Launching calls (api_) and queues (queue_) of a phase; of CUDA graphs in a row of its own, behind the plain one. */
  phases: { phase: PhaseKind }[];
  calls: ApiCall[];
}

/** Below it another connection costs what it gains. */
const worthConnecting = 500_000;

/**
 * Medians of kernels, launches and calls, on a connection of its own where there are many kernels: a median of one group runs
 * on one thread, so the other cores are free for the other queries.
 * @returns the spreads when they are there; close waits for them
 */
export async function startSpreads(
  session: Session,
  scope: TraceScope,
): Promise<{ spreads: () => Promise<Spreads>; close: () => Promise<void> }> {
  const kernels = (session.manifest.tables['kernels'] ?? []).reduce((sum, { rows }) => sum + rows, 0);
  if (kernels < worthConnecting) return { spreads: () => spreadsOf(scope), close: async () => {} };
  const own = await session.connect();
  const made = spreadsOf(scopeOn(own, scope.source));
  const ended = made.then(
    () => own.close(),
    () => own.close(),
  );
  return { spreads: () => made, close: () => ended };
}

async function spreadsOf(scope: TraceScope): Promise<Spreads> {
  const { database } = scope;
  await scope.need('own_kernels', 'focus_kernels');
  const launched = await queryDurations<LaunchedRow>(
    database,
    (
      type,
    ) => `SELECT name AS kernel, in_graph, any_value(short_name) AS short_name, max(correlation) AS correlation, arg_max(pid, correlation) AS pid,
            ${spreadColumns('greatest(start_ns + dur_ns, api_start_ns + api_dur_ns) - api_start_ns', 'total_', type)}, ${spreadColumns('api_dur_ns', 'api_', type)},
            ${spreadColumns(queue, 'queue_', type)}, ${spreadColumns('dur_ns', 'kernel_', type)}
     FROM (SELECT *, graph_node IS NOT NULL AS in_graph FROM own_kernels WHERE api_start_ns IS NOT NULL)
     GROUP BY name, in_graph ORDER BY kernel_total_ns DESC, name, in_graph`,
  );
  const graphs = launched.some(({ in_graph }) => in_graph);
  const phases = await queryDurations<{ phase: PhaseKind }>(
    database,
    (
      type,
    ) => `SELECT phase, ${spreadColumns('api_dur_ns', 'api_', type)}, ${spreadColumns(queue, 'queue_', type)}
     FROM focus_kernels WHERE graph_node IS NULL GROUP BY phase${graphs ? ofGraphNodes(type) : ''}`,
  );
  return { launched, phases, calls: await apiCalls(scope) };
}

const ofGraphNodes = (type: 'BIGINT' | 'INTEGER'): string => ` UNION ALL BY NAME
     SELECT phase, ${spreadColumns('api_dur_ns', 'api_', type)}, ${spreadColumns('queue_ns', 'queue_', type)}
     FROM (SELECT phase, any_value(api_dur_ns) AS api_dur_ns, min(${queue}) AS queue_ns
           FROM focus_kernels WHERE graph_node IS NOT NULL GROUP BY phase, pid, correlation)
     GROUP BY phase`;

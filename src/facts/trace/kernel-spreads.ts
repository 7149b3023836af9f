import type { ApiCall, PhaseKind } from '../../model/documents/trace.js';
import type { Session } from '../../session/open.js';
import { readApiCalls } from './api-calls.js';
import type { TraceScope } from './scope.js';
import { scopeOn } from '../derived/scope.js';
import { byPhaseSql } from './step-places.js';
import { queryDurations, spreadColumns } from './spread.js';

/** From the API call's return to the kernel's start; null if the kernel started before the return. */
const queueSql =
  'CASE WHEN start_ns > api_start_ns + api_dur_ns THEN start_ns - api_start_ns - api_dur_ns END';

/**
 * Kernels of a name with a recorded launch, with or without CUDA graphs. A row also has the spread columns total_*,
 * api_*, queue_* and kernel_*.
 */
export interface LaunchedRow {
  kernel: string | null;
  in_graph: boolean;
  short_name: string | null;
  /** Correlation id of one of the launches. */
  correlation: number | null;
  pid: number | null;
}

/** The parts of the summary with medians, which are the slowest: a median needs every value. */
export interface Spreads {
  /** The most kernel time first. */
  launched: LaunchedRow[];
  /** Launching calls (api_) and queues (queue_) by phase. CUDA graphs have their own row after the plain launches. */
  phases: { phase: PhaseKind }[];
  calls: ApiCall[];
}

/** With fewer kernels a second connection costs as much as it saves. */
const minKernelsForConnection = 500_000;

/**
 * Computes medians of kernels, launches and calls, with many kernels on a second connection: a median of one group uses
 * one thread, so other queries run on the other cores.
 * @returns spreads() waits for the result, close() closes the connection after it
 */
export async function startSpreads(
  session: Session,
  scope: TraceScope,
): Promise<{ spreads: () => Promise<Spreads>; close: () => Promise<void> }> {
  const kernels = (session.manifest.tables['kernels'] ?? []).reduce((sum, { rows }) => sum + rows, 0);
  if (kernels < minKernelsForConnection) return { spreads: () => readSpreads(scope), close: async () => {} };
  const connection = await session.connect();
  const spreads = readSpreads(scopeOn(connection, scope.source));
  const closed = spreads.then(
    () => connection.close(),
    () => connection.close(),
  );
  return { spreads: () => spreads, close: () => closed };
}

async function readSpreads(scope: TraceScope): Promise<Spreads> {
  const { database } = scope;
  await scope.need('rank_kernels', 'phase_kernels');
  const launched = await queryDurations<LaunchedRow>(
    database,
    (
      type,
    ) => `SELECT name AS kernel, in_graph, any_value(short_name) AS short_name, max(correlation) AS correlation, arg_max(pid, correlation) AS pid,
            ${spreadColumns('greatest(start_ns + dur_ns, api_start_ns + api_dur_ns) - api_start_ns', 'total_', type)}, ${spreadColumns('api_dur_ns', 'api_', type)},
            ${spreadColumns(queueSql, 'queue_', type)}, ${spreadColumns('dur_ns', 'kernel_', type)}
     FROM (SELECT *, graph_node IS NOT NULL AS in_graph FROM rank_kernels WHERE api_start_ns IS NOT NULL)
     GROUP BY name, in_graph ORDER BY kernel_total_ns DESC, name, in_graph`,
  );
  const hasGraphs = launched.some(({ in_graph }) => in_graph);
  const phases = await queryDurations<{ phase: PhaseKind }>(
    database,
    (
      type,
    ) => `SELECT phase, ${spreadColumns('api_dur_ns', 'api_', type)}, ${spreadColumns(queueSql, 'queue_', type)}
     FROM ${byPhaseSql('phase_kernels')} WHERE graph_node IS NULL GROUP BY phase${hasGraphs ? graphNodesSql(type) : ''}`,
  );
  return { launched, phases, calls: await readApiCalls(scope) };
}

const graphNodesSql = (type: 'BIGINT' | 'INTEGER'): string => ` UNION ALL BY NAME
     SELECT phase, ${spreadColumns('api_dur_ns', 'api_', type)}, ${spreadColumns('queue_ns', 'queue_', type)}
     FROM (SELECT phase, any_value(api_dur_ns) AS api_dur_ns, min(${queueSql}) AS queue_ns
           FROM ${byPhaseSql('phase_kernels')} WHERE graph_node IS NOT NULL GROUP BY phase, pid, correlation)
     GROUP BY phase`;

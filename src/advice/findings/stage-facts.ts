import { gapParts } from '../../model/bars.js';
import { type Slowdown, slowdown } from '../../model/headline-time.js';
import { stepKinds } from '../../model/record.js';
import type { PhaseKind } from '../../model/documents/trace.js';
import type { SessionDatabase } from '../../session/query.js';
import { removeProfilerOverhead } from '../../facts/without-profiler.js';
import { maxGlueNs, longHostNs, makeFindingTables } from './finding-tables.js';
import type { FindingContext } from './rule.js';
import { withHeadlineTime } from './headline-windows.js';
import { graphAttentionMs } from './graph-attention.js';
import { hostTimes } from './host-times.js';

/** Host waits on the launching threads, per instance; every wait has one cause. */
interface Waits {
  ms: number;
  calls: number;
}

/** A mean instance of a kind of stage; times in ms, counts per instance. */
export interface StageFacts {
  kind: PhaseKind;
  instances: number;
  /** The headline time; idle parts exclude profiler overhead too. */
  wall_ms: number;
  compute_ms: number;
  comm_ms: number;
  copy_ms: number;
  busy_ms: number;
  /** Parts of the device's idle time (docs/concepts/waterfall.md). */
  synchronization_ms: number;
  host_ms: number;
  launch_overhead_ms: number;
  launch_latency_ms: number;
  device_dependency_ms: number;
  unattributed_ms: number;
  kernels: number;
  /** API calls that launched them: all nodes of a CUDA graph share one. */
  launches: number;
  graph_launches: number;
  /** Host time from the first launch to the last, without waits, pauses in which it launches nothing, blocking launches and profiler overhead. */
  launching_ms: number;
  /** Host time of a step without waits, hidden by the device or not (host-times.ts); null if not known. */
  captured_host_ms: number | null;
  /** The same without the profiler; null if the clean execution does not show it. */
  own_host_ms: number | null;
  /** Part of host_ms in host gaps longer than a dispatch, without those of compile_ms and first_use_ms. */
  long_host_ms: number;
  /** Such gaps in which modules were loaded or code was compiled. */
  compile_ms: number;
  compiles: number;
  /** Such gaps in first steps far above the median, or of operators that take as long only in the first step: first-use cost. */
  first_use_ms: number;
  /**
   * The part of long_host_ms and compile_ms between two activities of a step that belongs to dispatch: inside operators, during
   * compilation or code loading, or short enough to be the model's own Python.
   */
  inside_ms: number;
  /** Number of the gaps of inside_ms. */
  insides: number;
  /** The part of inside_ms in longer operators, which do preparation before they launch. */
  prepared_ms: number;
  /** The part of inside_ms in which code was compiled or loaded. */
  inside_compile_ms: number;
  /** The part of long_host_ms before the first activity of a step. */
  before_ms: number;
  /** Time by which attention gets longer in a CUDA graph (graphAttentionMs). */
  graph_attention_ms: number;
  /**
   * Waits on launching threads: for the device, for a value copied to the host, for copies to the device, for the
   * allocator. Waits for the device include the host time for reading the value.
   */
  waits: Record<WaitCause, Waits>;
}

export const waitCauses = ['synchronize', 'read', 'copy', 'allocator'] as const;
export type WaitCause = (typeof waitCauses)[number];

const factsByContext = new WeakMap<FindingContext, Promise<StageFacts[]>>();

/**
 * Facts of the stages that rules judge: prefill, decode, mixed and training steps, else all other windows, such as the whole capture.
 * Computed once per context, with
 * the tables of finding-tables.ts. Empty without a GPU timeline.
 */
export function stageFacts(context: FindingContext): Promise<StageFacts[]> {
  const facts = factsByContext.get(context) ?? readFacts(context);
  factsByContext.set(context, facts);
  return facts;
}

const steps: ReadonlySet<PhaseKind> = new Set([...stepKinds, 'training']);

async function readFacts(context: FindingContext): Promise<StageFacts[]> {
  const { scope, waterfalls } = context;
  if (!scope) return [];
  const { database } = scope;
  await makeFindingTables(scope);
  const windows = await meanWindows(database);
  const hosts = await hostTimes(scope);
  const rows = withHeadlineTime(waterfalls, windows)
    .map((row, i) => rowAsClean(row, windows[i]!))
    // Steps that start at the same time have no time of their own.
    .filter(({ wall_ms }) => wall_ms > 0)
    .toSorted((a, b) => b.instances * b.wall_ms - a.instances * a.wall_ms);
  const stepRows = rows.filter(({ kind }) => steps.has(kind));
  const addedByKind = new Map<PhaseKind, number>();
  for (const { kind, attention_ms, graph_launches } of stepRows)
    if (graph_launches === 0) addedByKind.set(kind, await graphAttentionMs(context, kind, attention_ms));
  return (stepRows.length > 0 ? stepRows : rows).map((row) => ({
    ...row,
    graph_attention_ms: addedByKind.get(row.kind) ?? 0,
    captured_host_ms: hosts.get(row.kind)?.captured_ms ?? null,
    own_host_ms: hosts.get(row.kind)?.own_ms ?? null,
    busy_ms: row.compute_ms + row.comm_ms + row.copy_ms,
    waits: {
      synchronize: { ms: row.synchronize_wait_ms + row.held_ms, calls: row.synchronize_calls },
      read: { ms: row.read_wait_ms, calls: row.read_calls },
      copy: { ms: row.copy_wait_ms, calls: row.copy_calls },
      allocator: { ms: row.allocator_wait_ms, calls: row.allocator_calls },
    },
  }));
}

/** Minimum host time that a profiler adds to a launch, as seen in generated and stock programs under nsys on an H200. */
const addedPerLaunchMs = 0.007;

/** @param row with the headline time; @param window the same as recorded */
function rowAsClean(row: Row, window: Row): Row {
  const busyMs = window.compute_ms + window.comm_ms + window.copy_ms;
  const slower = slowdown({ busy: busyMs, idle: window.wall_ms - busyMs }, row.wall_ms);
  const scaled = scaledRow(row, slower);
  const profiledMs = slower.busy * busyMs + slower.idle * (window.wall_ms - busyMs);
  const clean = withoutAdded(scaled, profiledMs - row.wall_ms);
  const isProfiled = row.wall_ms !== window.wall_ms;
  const addedMs = isProfiled ? Math.max(0, window.wall_ms - row.wall_ms, addedPerLaunchMs * row.launches) : 0;
  return {
    ...clean,
    held_ms: scaled.held_ms * (hostIdle(clean) / (hostIdle(scaled) || 1)),
    launching_ms: Math.max(0, row.launching_ms - pausedMs(window) - addedMs),
  };
}

/** Time of the long gaps between two activities of a step in which the host neither dispatches nor prepares launches. */
const pausedMs = ({ long_host_ms, before_ms, inside_ms, inside_compile_ms }: Row): number =>
  Math.max(0, long_host_ms - before_ms - (inside_ms - inside_compile_ms));

/** Columns of device work, and idle time with its parts. */
const busyColumns = ['compute_ms', 'comm_ms', 'copy_ms', 'attention_ms'] as const;
const idleColumns = [
  ...gapParts.map((part) => `${part}_ms` as const),
  'edges_ms',
  'long_host_ms',
  'compile_ms',
  'first_use_ms',
  'inside_ms',
  'prepared_ms',
  'inside_compile_ms',
  'before_ms',
  'held_ms',
] as const;

function scaledRow(row: Row, { busy, idle }: Slowdown): Row {
  const scaled = { ...row };
  for (const column of busyColumns) scaled[column] = busy * row[column];
  for (const column of idleColumns) scaled[column] = idle * row[column];
  return scaled;
}

type Row = Omit<StageFacts, 'busy_ms' | 'captured_host_ms' | 'own_host_ms' | 'graph_attention_ms' | 'waits'> &
  Record<`${WaitCause}_wait_ms` | `${WaitCause}_calls`, number> & {
    held_ms: number;
    edges_ms: number;
    attention_ms: number;
  };

/** Idle parts caused by the host, and their part in long gaps. */
type HostParts = Pick<
  StageFacts,
  | 'host_ms'
  | 'launch_overhead_ms'
  | 'launch_latency_ms'
  | 'synchronization_ms'
  | 'long_host_ms'
  | 'compile_ms'
  | 'first_use_ms'
  | 'inside_ms'
  | 'prepared_ms'
  | 'inside_compile_ms'
  | 'before_ms'
>;

const hostIdle = (parts: HostParts): number =>
  parts.host_ms + parts.launch_overhead_ms + parts.launch_latency_ms + parts.synchronization_ms;

/** Removes profiler overhead from the same bars as the waterfall. */
function withoutAdded<F extends HostParts & { edges_ms: number }>(facts: F, added_ms: number): F {
  const parts = removeProfilerOverhead(
    [
      { id: 'host', ms: facts.host_ms },
      // Before the first and after the last activity of the capture: host time of the waterfall, but no gap between launches.
      { id: 'host.start_up', ms: facts.edges_ms },
      { id: 'launch_overhead', ms: facts.launch_overhead_ms },
      { id: 'launch_latency', ms: facts.launch_latency_ms },
      { id: 'synchronization', ms: facts.synchronization_ms },
    ],
    added_ms,
  );
  const [host_ms, , launch_overhead_ms, launch_latency_ms, synchronization_ms] = parts.map(({ ms }) => ms);
  return withHostParts(facts, {
    host_ms: host_ms!,
    launch_overhead_ms: launch_overhead_ms!,
    launch_latency_ms: launch_latency_ms!,
    synchronization_ms: synchronization_ms!,
  });
}

/** Other idle parts of the host; reductions apply to short gaps first, then to long ones. */
export function withHostParts<F extends HostParts>(
  facts: F,
  parts: Pick<HostParts, 'host_ms' | 'launch_overhead_ms' | 'launch_latency_ms' | 'synchronization_ms'>,
): F {
  const longHostMs = facts.long_host_ms + facts.compile_ms + facts.first_use_ms;
  const removedMs = facts.host_ms - parts.host_ms - Math.max(0, facts.host_ms - longHostMs);
  const remainingShare = longHostMs > 0 && removedMs > 0 ? Math.max(0, 1 - removedMs / longHostMs) : 1;
  return {
    ...facts,
    ...parts,
    long_host_ms: facts.long_host_ms * remainingShare,
    compile_ms: facts.compile_ms * remainingShare,
    first_use_ms: facts.first_use_ms * remainingShare,
    inside_ms: facts.inside_ms * remainingShare,
    prepared_ms: facts.prepared_ms * remainingShare,
    inside_compile_ms: facts.inside_compile_ms * remainingShare,
    before_ms: facts.before_ms * remainingShare,
  };
}

function meanWindows(database: SessionDatabase): Promise<Row[]> {
  const perInstance = (column: string) => `coalesce(any_value(${column}), 0) / count(*)`;
  return database.query<Row>(
    `WITH kernel AS (
       SELECT stage_id, sum(ns) FILTER (class <> 'communication') AS compute, sum(ns) FILTER (class = 'communication') AS comm, sum(ns) FILTER (class = 'attention') AS attention
       FROM window_kernels GROUP BY stage_id),
     copy AS (SELECT stage_id, sum(ns) AS copied FROM window_copies GROUP BY stage_id),
     named AS (SELECT kind, sum(n) AS kernels, sum(CASE WHEN in_graph THEN 0 ELSE n END) AS single FROM finding_kernels GROUP BY kind),
     graph AS (SELECT kind, sum(graph_launches) AS graph_launches FROM finding_graphs GROUP BY kind),
     long AS (SELECT kind, sum(ns) FILTER (cause = 'host') AS long_host,
                sum(ns) FILTER (cause = 'compile') AS compile, count_if(cause = 'compile') AS compiles,
                sum(ns) FILTER (cause = 'first_use') AS first_use,
                sum(ns) FILTER (inside AND (cause = 'compile' OR (cause = 'host' AND (operator IS NOT NULL OR ns <= ${maxGlueNs})))) AS inside,
                count_if(inside AND (cause = 'compile' OR (cause = 'host' AND (operator IS NOT NULL OR ns <= ${maxGlueNs})))) AS insides,
                sum(ns) FILTER (inside AND cause = 'host' AND operator IS NOT NULL AND ns > ${maxGlueNs}) AS prepared,
                sum(ns) FILTER (inside AND cause = 'compile') AS inside_compile, sum(ns) FILTER (NOT inside AND cause = 'host') AS before
              FROM finding_long_hosts GROUP BY kind),
     wait AS (SELECT kind, ${waitCauses.map((cause) => `sum(dur_ns) FILTER (cause = '${cause}') AS ${cause}_ns, count_if(cause = '${cause}') AS ${cause}_n`).join(', ')}
              FROM finding_waits GROUP BY kind),
     cost AS (SELECT kind, held_ns AS held FROM finding_wait_costs),
     launching AS (SELECT step_id AS stage_id, tid, min(api_start_ns) AS first_ns, max(api_start_ns + api_dur_ns) AS last_ns,
         coalesce(sum(greatest(0, api_dur_ns - ${longHostNs})) FILTER (graph_node IS NULL), 0) AS blocked_ns
       FROM rank_kernels JOIN stages_in_phases USING (stage_id) WHERE api_start_ns IS NOT NULL GROUP BY step_id, tid),
     between_launches AS (SELECT l.stage_id, l.tid, sum(f.dur_ns) AS waited_ns FROM launching l JOIN finding_waits f ON f.window_id = l.stage_id AND f.tid = l.tid
       WHERE f.start_ns BETWEEN first_ns AND last_ns GROUP BY ALL),
     host AS (SELECT stage_id, max(last_ns - first_ns - blocked_ns - coalesce(waited_ns, 0)) AS launching_ns FROM launching LEFT JOIN between_launches USING (stage_id, tid) GROUP BY stage_id)
     SELECT w.kind, count(*) AS instances, avg(w.end_ns - w.start_ns) / 1e6 AS wall_ms,
       coalesce(sum(compute), 0) / count(*) / 1e6 AS compute_ms, coalesce(sum(comm), 0) / count(*) / 1e6 AS comm_ms,
       coalesce(sum(attention), 0) / count(*) / 1e6 AS attention_ms, coalesce(sum(copied), 0) / count(*) / 1e6 AS copy_ms,
       ${gapParts.map((part) => `avg(i.${part}) / 1e6 AS ${part}_ms`).join(', ')}, avg(i.start_up + i.shut_down) / 1e6 AS edges_ms,
       ${perInstance('named.kernels')} AS kernels, ${perInstance('graph.graph_launches')} AS graph_launches,
       ${perInstance('named.single')} + ${perInstance('graph.graph_launches')} AS launches,
       ${perInstance('long_host')} / 1e6 AS long_host_ms,
       ${perInstance('compile')} / 1e6 AS compile_ms, ${perInstance('compiles')} AS compiles, ${perInstance('first_use')} / 1e6 AS first_use_ms, ${perInstance('inside')} / 1e6 AS inside_ms, ${perInstance('insides')} AS insides,
       ${perInstance('prepared')} / 1e6 AS prepared_ms, ${perInstance('inside_compile')} / 1e6 AS inside_compile_ms,
       ${perInstance('before')} / 1e6 AS before_ms,
       ${perInstance('held')} / 1e6 AS held_ms, coalesce(avg(host.launching_ns), 0) / 1e6 AS launching_ms,
       ${waitCauses.map((cause) => `${perInstance(`${cause}_ns`)} / 1e6 AS ${cause}_wait_ms, ${perInstance(`${cause}_n`)} AS ${cause}_calls`).join(', ')}
     FROM windows w JOIN window_idle i USING (stage_id) LEFT JOIN kernel USING (stage_id) LEFT JOIN copy USING (stage_id)
     LEFT JOIN named ON named.kind = w.kind LEFT JOIN graph ON graph.kind = w.kind
     LEFT JOIN long ON long.kind = w.kind LEFT JOIN wait ON wait.kind = w.kind LEFT JOIN cost ON cost.kind = w.kind LEFT JOIN host ON host.stage_id = w.stage_id
     WHERE w.kind <> 'sampling' GROUP BY w.kind`,
  );
}

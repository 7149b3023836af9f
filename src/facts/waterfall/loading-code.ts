import { readCallNames } from '../trace/call-names.js';
import { literal, type TraceScope } from '../trace/scope.js';

/** Calls that load code onto a device. Triton, TorchInductor, NVRTC and the runtime's lazy loading all use them. */
const moduleLoads = /^(cuModuleLoad|cuLibraryLoad|cudaLibraryLoad|hipModuleLoad|nvrtc|cuLink)/;

/** Kinds of stages in which code is loaded once. */
const loadingKinds = "('load', 'warmup')";

/** Names of the recorded calls that load code. */
export async function loadingCalls(scope: TraceScope): Promise<string[]> {
  const names = await readCallNames(scope);
  return names.filter((name) => moduleLoads.test(name));
}

/**
 * SQL of (stage_id of the window, call, ns): host time in gaps of loading and warm-up in which a thread loaded code.
 * Nested calls of one thread count once.
 */
export function loadingSql(calls: readonly string[]): string {
  return `WITH call AS (
       SELECT name, start_ns, start_ns + dur_ns AS end_ns FROM rank_api WHERE name IN (${calls.map(literal).join(', ') || 'NULL'})
       QUALIFY start_ns >= coalesce(max(start_ns + dur_ns) OVER (PARTITION BY pid, tid ORDER BY start_ns, dur_ns DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), start_ns)),
     gap AS (
       SELECT w.stage_id, greatest(g.start_ns + coalesce(synchronization_ns, 0), w.start_ns) AS h_start,
         least(g.start_ns + coalesce(synchronization_ns, 0) + host_ns, w.end_ns) AS h_end
       FROM rank_gaps g JOIN windows w ON g.start_ns < w.end_ns AND g.start_ns + g.dur_ns > w.start_ns WHERE host_ns > 0 AND w.kind IN ${loadingKinds})
     SELECT stage_id, name AS call, sum(least(h_end, call.end_ns) - greatest(h_start, call.start_ns))::DOUBLE AS ns
     FROM gap JOIN call ON call.start_ns < h_end AND call.end_ns > h_start GROUP BY ALL`;
}

/** Time of loadingSql by window, ns; empty without such calls. */
export async function readLoadingNs(scope: TraceScope): Promise<Map<number, number>> {
  const nsByWindow = new Map<number, number>();
  if ((await loadingCalls(scope)).length === 0) return nsByWindow;
  await scope.need('loading_calls');
  const rows = await scope.database.query<{ stage_id: number; ns: number }>('FROM loading_calls');
  for (const { stage_id, ns } of rows) nsByWindow.set(stage_id, (nsByWindow.get(stage_id) ?? 0) + ns);
  return nsByWindow;
}

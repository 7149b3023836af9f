import type { Batch, Workbench } from '../../model/workbench.js';
import { deviceSweep, type DeviceSweep, priorities } from './device-sweep.js';
import type { Host } from './host-threads.js';
import { type GapLatency, gapSamples } from './launch-latency.js';
import { kernelClassSql } from './names.js';
import { openRowWriter } from './row-writer.js';
import { sliceRows } from './slices.js';

export interface DeviceTimes extends GapLatency {
  /** Whether any activity has less exclusive time than duration. */
  overlapping: boolean;
}

/** Activities of both tables in one numbering: copies are −1, −2, … */
const activities = `
  SELECT k.activity, k.start_ns, k.dur_ns, k.rank, k.device, k.pid, k.context, k.stream,
    CASE WHEN ${kernelClassSql} = 'communication' THEN ${priorities.communication} ELSE ${priorities.compute} END AS priority,
    k.api_start_ns, k.api_dur_ns, k.tid, k.correlation, k.graph_node
  FROM attr_kernels k LEFT JOIN attr_kernel_names n ON n.code = k.name
  UNION ALL
  SELECT -1 - activity, start_ns, dur_ns, rank, device, pid, context, stream, ${priorities.copy},
    api_start_ns, api_dur_ns, tid, correlation, graph_node
  FROM attr_copies`;

/**
 * Sweeps every device (and rank) once. Writes
 * - attr_exclusive (activity, exclusive_ns): only activities with an exclusive time other than their duration;
 * - attr_gaps (activity, idle_ns, waiting_ns, in_graph): idle from idle_ns until the activity starts; the thread that
 *   launched it spent waiting_ns of the time before its call in synchronizing calls.
 */
export async function sweepDevices(workbench: Workbench, host: Host): Promise<DeviceTimes> {
  const exclusive = await openRowWriter(workbench, 'attr_exclusive', ['activity', 'exclusive_ns']);
  const gaps = await openRowWriter(workbench, 'attr_gaps', ['activity', 'idle_ns', 'waiting_ns', 'in_graph']);
  const samples = gapSamples();
  const current = { callStart: 0, callEnd: 0, pid: 0, tid: 0, graph: Number.NaN, kernel: true };
  let graphBefore = Number.NaN;
  let overlapping = false;

  const events = {
    ended(activity: number, durNs: number, exclusiveNs: number) {
      if (exclusiveNs === durNs) return;
      exclusive.add(activity, exclusiveNs);
      overlapping = true;
    },
    idle(activity: number, fromNs: number, toNs: number) {
      const { pid, tid, graph, kernel, callStart, callEnd } = current;
      const inGraph = graph === graphBefore;
      const waiting = host.processes.get(pid)?.threads.get(tid)?.waiting;
      const waited = samples.addGap(inGraph, kernel, callStart, callEnd, waiting, fromNs, toNs);
      gaps.add(activity, fromNs, waited, Number(inGraph));
    },
  };

  let sweep: DeviceSweep | null = null;
  let device = Number.NaN;
  let rank = Number.NaN;
  for await (const { rows, columns } of scanActivities(workbench)) {
    const activity = columns['activity']!;
    const start = columns['start_ns']!;
    const dur = columns['dur_ns']!;
    const priority = columns['priority']!;
    const stream = columns['stream']!;
    const graph = columns['graph']!;
    for (let row = 0; row < rows; row++) {
      if (!sweep || columns['device']![row] !== device || columns['rank']![row] !== rank) {
        sweep?.finish();
        sweep = deviceSweep(events);
        device = columns['device']![row]!;
        rank = columns['rank']![row]!;
        graphBefore = Number.NaN;
      }
      current.callStart = columns['api_start_ns']![row]!;
      current.callEnd = columns['api_end_ns']![row]!;
      current.pid = columns['pid']![row]!;
      current.tid = columns['tid']![row]!;
      current.graph = graph[row]!;
      current.kernel = priority[row]! < priorities.copy;
      sweep.add(activity[row]!, start[row]!, start[row]! + dur[row]!, priority[row]!, stream[row]!);
      graphBefore = graph[row]!;
    }
  }
  sweep?.finish();
  exclusive.close();
  gaps.close();
  return { ...samples.estimate(), overlapping };
}

/** All activities by rank, device and start, in time slices that are sorted one by one. */
async function* scanActivities(workbench: Workbench): AsyncGenerator<Batch> {
  const devices = await workbench.query<{ rank: number; device: number }>(
    `SELECT DISTINCT coalesce(rank, -1) AS rank, coalesce(device, -1) AS device FROM (${activities}) ORDER BY ALL`,
  );
  const cuts = await workbench.query<{ start_ns: number }>(
    `SELECT DISTINCT start_ns FROM attr_kernels WHERE rowid > 0 AND rowid % ${sliceRows} = 0 ORDER BY start_ns`,
  );
  const edges = [null, ...cuts.map(({ start_ns }) => start_ns), null];
  for (const { rank, device } of devices) {
    for (let slice = 0; slice + 1 < edges.length; slice++) {
      const [from, to] = [edges[slice], edges[slice + 1]];
      const bounds = [
        ...(from === null ? [] : [`start_ns >= ${from}`]),
        ...(to === null ? [] : [`start_ns < ${to}`]),
      ];
      yield* workbench.scan(
        `SELECT activity, start_ns, dur_ns, coalesce(rank, -1) AS rank, coalesce(device, -1) AS device, pid, tid, priority,
           hash(pid, context, stream) % 4503599627370496 AS stream, api_start_ns, api_start_ns + api_dur_ns AS api_end_ns,
           CASE WHEN graph_node IS NOT NULL THEN correlation END AS graph
         FROM (${activities})
         WHERE ${[`coalesce(rank, -1) = ${rank}`, `coalesce(device, -1) = ${device}`, ...bounds].join(' AND ')}
         ORDER BY start_ns, priority, abs(activity)`,
      );
    }
  }
}

import type { Issue } from '../../model/document.js';
import { sentence, quantity } from '../../vocabulary/sentence-template.js';
import type { Workbench } from '../../model/workbench.js';
import type { DeviceTimes } from './devices.js';
import type { HostCounts } from './host-sweep.js';
import type { Inference } from './infer-ranges.js';
import type { ImpossibleCounts } from './impossible.js';
import { noKernelsIssue } from '../importer.js';
import type { OrphanCounts } from './orphans.js';
import type { IssueCode } from '../../model/issue-codes.js';

interface AttributionCounts {
  counts: HostCounts;
  orphans: OrphanCounts;
  /** Calls with the correlation id of an earlier call. */
  shared: number;
  impossible: ImpossibleCounts;
  times: DeviceTimes;
  device: DeviceCounts;
  stages: number;
  /** Calls that launch kernels, in a capture without kernels; null if it has kernels. */
  launches: number | null;
  inference: Inference;
}

/** Kernels and copies, by how they were attributed. */
export interface DeviceCounts {
  activities: number;
  opaque: number;
  by_process: number;
  by_thread: number;
  unstaged: number;
}

/** Over attr_kernels and attr_copies. */
export async function countDeviceWork(workbench: Workbench): Promise<DeviceCounts> {
  const [device] = await workbench.query<DeviceCounts>(
    `SELECT count(*) AS activities, count(*) FILTER (opaque_graph) AS opaque,
       count(*) FILTER (attributed_by = 1) AS by_process, count(*) FILTER (attributed_by = 2) AS by_thread,
       count(*) FILTER (stage_id IS NULL) AS unstaged
     FROM (SELECT opaque_graph, attributed_by, stage_id FROM attr_kernels
           UNION ALL SELECT false, attributed_by, stage_id FROM attr_copies)`,
  );
  return device!;
}

/** Counts of everything that attribution guessed, cut or dropped. */
export function attributionIssues(found: AttributionCounts): Issue[] {
  const { activities, opaque, by_process: byProcess, by_thread: byThread, unstaged } = found.device;
  const { counts, orphans, shared, impossible, times, stages, launches, inference } = found;
  const inferenceFailure = inference.why === null ? '' : ` No steps were inferred: ${inference.why}.`;
  const issues: (Issue & { count: number })[] = [
    issue(
      noKernelsIssue,
      'warning',
      launches ?? 0,
      (n) =>
        sentence`${n} API calls launch kernels, but the capture contains no kernels: the kernel records were lost.`,
    ),
    issue(
      'activities_repeated',
      'warning',
      impossible.repeated,
      (n) => sentence`Kernels and copies recorded more than once: ${n}; duplicates were dropped.`,
    ),
    issue(
      'activities_without_device',
      'warning',
      impossible.impossibleDevice,
      (n) => sentence`Kernels and copies with an invalid device number: ${n}; they were dropped.`,
    ),
    issue(
      'activities_before_launch',
      'warning',
      impossible.beforeLaunch,
      (n) =>
        sentence`Kernels and copies that start more than 1 s before the call that launched them: ${n}; they were dropped.`,
    ),
    issue(
      'activities_after_launch',
      'warning',
      impossible.afterLaunch,
      (n) =>
        sentence`${n} of ${activities} kernels and copies start more than 1 min after the call that launched them: the times of the kernels or of the calls are wrong.`,
    ),
    issue(
      'clocks_disagree',
      impossible.skewed * 100 > activities ? 'warning' : 'info',
      impossible.skewed,
      (n) =>
        sentence`${n} of ${activities} kernels and copies start before the call that launched them, by up to ${quantity(impossible.maxSkewNs, 'ns')}: host and device clocks disagree, so causes of idle time are uncertain.`,
    ),
    issue(
      'ranges_unclosed',
      'warning',
      counts.unclosedRanges,
      (n) => sentence`${n} ranges were never closed; the last event of their thread was taken as their end.`,
    ),
    issue(
      'ranges_overlapping',
      'warning',
      counts.overlappingRanges,
      (n) =>
        sentence`${n} ranges overlap another range of their thread without nesting; work inside both was assigned to the later range.`,
    ),
    issue(
      'calls_clipped',
      'info',
      counts.clippedCalls,
      (n) =>
        sentence`${n} API calls start inside a range and end after it; they were assigned to the enclosing range that contains the whole call, if any.`,
    ),
    issue(
      'correlation_shared',
      // A runtime call contains one driver call: more calls share an id only in a damaged file.
      shared > activities ? 'warning' : 'info',
      shared,
      (n) =>
        sentence`${n} API calls share a correlation id with an earlier call (a runtime call and the driver call inside it); the earlier call was used.`,
    ),
    issue(
      'orphans',
      orphans.orphans * 10 > activities ? 'warning' : 'info',
      orphans.orphans,
      (n) =>
        sentence`${n} of ${activities} kernels and copies have no API call in the capture; ${orphans.byTime} were assigned to a stage by their start time. Idle time before them has no known cause.`,
    ),
    issue(
      'graphs_opaque',
      'warning',
      opaque,
      (n) =>
        sentence`${n} CUDA graph launches were recorded as one row each: the kernels inside are unknown. Capture with --cuda-graph-trace=node.`,
    ),
    issue(
      'attributed_by_process_range',
      'info',
      byProcess,
      (n) =>
        sentence`${n} of ${activities} kernels and copies were launched outside the ranges of their thread and were assigned to a start/end range of the process.`,
    ),
    issue(
      'attributed_by_thread',
      'info',
      byThread,
      (n) =>
        sentence`${n} of ${activities} kernels and copies were launched by threads without ranges and were assigned to the open range of another thread of the process.`,
    ),
    issue(
      'outside_stages',
      'info',
      stages > 0 ? unstaged : 0,
      (n) => sentence`${n} of ${activities} kernels and copies are outside all ranges.`,
    ),
    issue(
      'steps_inferred',
      'info',
      inference.ranges.length,
      (n) =>
        sentence`${n} steps that the program does not mark were inferred from the repeating sequence of kernels: ${inferredKinds(inference)}.`,
    ),
    issue(
      'stages_missing',
      'warning',
      stages === 0 && activities > 0 ? activities : 0,
      (n) =>
        sentence`The capture has no NVTX or record_function ranges: its kernels and copies (${n}) have no stage.${inferenceFailure}`,
    ),
  ];
  return [...issues.filter(({ count }) => count > 0), ...(activities > 0 ? latencyIssues(times) : [])];
}

/** "12 decode, 1 prefill". */
function inferredKinds({ ranges }: Inference): string {
  const counts = new Map<string, number>();
  for (const { label } of ranges) counts.set(label.kind, (counts.get(label.kind) ?? 0) + 1);
  return [...counts].map(([kind, n]) => `${n} ${kind === 'other' ? 'of unknown kind' : kind}`).join(', ');
}

function issue(
  code: IssueCode,
  severity: Issue['severity'],
  count: number,
  text: (count: number) => ReturnType<typeof sentence>,
): Issue & { count: number } {
  return { code, severity, count, ...text(count) };
}

function latencyIssues({ launch, graphNode }: DeviceTimes): Issue[] {
  const method = '90th percentile, capped at twice the median,';
  const issues: Issue[] = [
    {
      code: 'launch_latency',
      severity: 'info',
      count: launch.launches,
      ...(launch.launches > 0
        ? sentence`Launch latency: ${quantity(launch.latencyNs, 'ns')} from the return of the call to the start of the kernel on an idle device (${method} of ${launch.launches} launches).`
        : sentence`No kernel was launched on an idle device; a launch latency of ${quantity(launch.latencyNs, 'ns')} was assumed.`),
    },
  ];
  if (graphNode.launches > 0) {
    issues.push({
      code: 'graph_node_latency',
      severity: 'info',
      count: graphNode.launches,
      ...sentence`Latency between nodes of a CUDA graph: ${quantity(graphNode.latencyNs, 'ns')}, ${method} of ${graphNode.launches} pairs.`,
    });
  }
  return issues;
}

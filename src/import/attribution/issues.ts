import type { Issue } from '../../model/document.js';
import { said } from '../../model/said.js';
import type { Workbench } from '../../model/workbench.js';
import type { DeviceTimes } from './devices.js';
import type { HostCounts } from './host-sweep.js';
import type { ImpossibleCounts } from './impossible.js';
import { noKernelsIssue } from '../importer.js';
import type { OrphanCounts } from './orphans.js';

export interface AttributionCounts {
  counts: HostCounts;
  orphans: OrphanCounts;
  /** Calls that have the correlation id of another one. */
  shared: number;
  impossible: ImpossibleCounts;
  times: DeviceTimes;
  device: DeviceCounts;
  stages: number;
  /** Calls that launch kernels, where there are no kernels; null where there are. */
  launches: number | null;
}

/** Kernels and copies, by what became of them. */
export interface DeviceCounts {
  activities: number;
  opaque: number;
  by_process: number;
  by_thread: number;
  unstaged: number;
}

/** Of attr_kernels and attr_copies. */
export async function deviceCounts(workbench: Workbench): Promise<DeviceCounts> {
  const [device] = await workbench.query<DeviceCounts>(
    `SELECT count(*) AS activities, count(*) FILTER (opaque_graph) AS opaque,
       count(*) FILTER (attributed_by = 1) AS by_process, count(*) FILTER (attributed_by = 2) AS by_thread,
       count(*) FILTER (stage_id IS NULL) AS unstaged
     FROM (SELECT opaque_graph, attributed_by, stage_id FROM attr_kernels
           UNION ALL SELECT false, attributed_by, stage_id FROM attr_copies)`,
  );
  return device!;
}

/** Everything attribution had to guess, cut or leave out, counted. */
export function attributionIssues(found: AttributionCounts): Issue[] {
  const { activities, opaque, by_process: byProcess, by_thread: byThread, unstaged } = found.device;
  const { counts, orphans, shared, impossible, times, stages, launches } = found;
  const issues: (Issue & { count: number })[] = [
    issue(
      noKernelsIssue,
      'warning',
      launches ?? 0,
      (n) => said`${n} API calls launch kernels, and the capture has no kernel: its kernels were lost.`,
    ),
    issue(
      'activities_repeated',
      'warning',
      impossible.repeated,
      (n) => said`${n} kernels and copies were recorded more than once; each counts once.`,
    ),
    issue(
      'activities_without_device',
      'warning',
      impossible.noDevice,
      (n) => said`${n} kernels and copies ran on a device whose number no machine has; they are left out.`,
    ),
    issue(
      'activities_before_launch',
      'warning',
      impossible.beforeLaunch,
      (n) =>
        said`${n} kernels and copies begin more than a second before the call that launched them; they are left out.`,
    ),
    issue(
      'activities_after_launch',
      'warning',
      impossible.afterLaunch,
      (n) =>
        said`${n} of ${activities} kernels and copies begin more than a minute after the call that launched them: the times of one of both are wrong.`,
    ),
    issue(
      'clocks_disagree',
      impossible.skewed * 100 > activities ? 'warning' : 'info',
      impossible.skewed,
      (n) =>
        said`${n} of ${activities} kernels and copies begin before the call that launched them, by up to ${Math.round(impossible.mostSkewNs / 1000)} us: the clocks of host and device disagree, so causes of idle time are uncertain.`,
    ),
    issue(
      'ranges_unclosed',
      'warning',
      counts.unclosedRanges,
      (n) => said`${n} ranges were never closed; they end with the last event of their thread.`,
    ),
    issue(
      'ranges_overlapping',
      'warning',
      counts.overlappingRanges,
      (n) =>
        said`${n} ranges of one thread overlap without holding each other; work inside both belongs to the later one.`,
    ),
    issue(
      'calls_clipped',
      'info',
      counts.clippedCalls,
      (n) =>
        said`${n} API calls begin in a range and end after it; they belong to the range around it that holds all of the call, if any.`,
    ),
    issue(
      'correlation_shared',
      // A runtime call holds one driver call: more share an id in a damaged file only.
      shared > activities ? 'warning' : 'info',
      shared,
      (n) =>
        said`${n} API calls have the correlation id of another one (a runtime call and the driver call inside it); the first one counts.`,
    ),
    issue(
      'orphans',
      orphans.orphans * 10 > activities ? 'warning' : 'info',
      orphans.orphans,
      (n) =>
        said`${n} of ${activities} kernels and copies have no API call in the capture; ${orphans.byTime} were given to a stage by their time, idle time before them has no cause.`,
    ),
    issue(
      'graphs_opaque',
      'warning',
      opaque,
      (n) =>
        said`${n} CUDA graph launches were recorded as one row each: what ran inside is not known. Capture with --cuda-graph-trace=node.`,
    ),
    issue(
      'attributed_by_process_range',
      'info',
      byProcess,
      (n) =>
        said`${n} of ${activities} kernels and copies were launched outside the ranges of their thread and belong to a start/end range of the process.`,
    ),
    issue(
      'attributed_by_thread',
      'info',
      byThread,
      (n) =>
        said`${n} of ${activities} kernels and copies were launched by threads without ranges and belong to the range another thread of the process was in.`,
    ),
    issue(
      'outside_stages',
      'info',
      stages > 0 ? unstaged : 0,
      (n) => said`${n} of ${activities} kernels and copies belong to no range.`,
    ),
    issue(
      'stages_missing',
      'warning',
      stages === 0 && activities > 0 ? activities : 0,
      (n) =>
        said`The capture has no NVTX or record_function ranges: ${n} kernels and copies belong to no stage.`,
    ),
  ];
  return [...issues.filter(({ count }) => count > 0), ...(activities > 0 ? latencyIssues(times) : [])];
}

function issue(
  code: string,
  severity: Issue['severity'],
  count: number,
  text: (count: number) => ReturnType<typeof said>,
): Issue & { count: number } {
  return { code, severity, count, ...text(count) };
}

function latencyIssues({ launch, graphNode }: DeviceTimes): Issue[] {
  const how = '90th percentile, at most twice the median';
  const issues: Issue[] = [
    {
      code: 'launch_latency',
      severity: 'info',
      count: launch.launches,
      ...(launch.launches > 0
        ? said`Launch latency is taken as ${launch.latencyNs} ns: return of the call to begin of the kernel on an idle device, ${how} of ${launch.launches} launches.`
        : said`No kernel was launched onto an idle device; a launch latency of ${launch.latencyNs} ns is assumed.`),
    },
  ];
  if (graphNode.launches > 0) {
    issues.push({
      code: 'graph_node_latency',
      severity: 'info',
      count: graphNode.launches,
      ...said`Between nodes of a CUDA graph ${graphNode.latencyNs} ns are latency: ${how} of ${graphNode.launches} pairs.`,
    });
  }
  return issues;
}

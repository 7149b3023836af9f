import { document, type Document, type Issue } from '../../model/document.js';
import type { CountersResult, KernelCounters } from '../../model/documents/counters.js';
import { combine, metricFigure, type Metrics } from './metrics.js';
import { figure } from '../../model/figure.js';
import type { Session } from '../../session/open.js';
import { memoryThroughput, smThroughput, speedOfLightBound } from './bound.js';
import { tensorPipe } from './flop.js';
import { readDevices, type KernelGroup, readKernelGroups, readLaunches } from './kernel-groups.js';
import { occupancyOf } from './occupancy.js';
import { kernelRoofline } from './roofline.js';
import { stallsOf } from './stalls.js';

/**
 * Limiters of each kernel from hardware counters (ncu). Kernels of different captures are never combined. Durations are
 * those under ncu (caches flushed, clocks possibly locked); normal run times are in `kernels`.
 */
export async function analyzeCounters(session: Session): Promise<Document<CountersResult>> {
  const database = await session.connect();
  try {
    const groups = await readKernelGroups(database);
    const { launches, total } = await readLaunches(database, groups);
    const data = {
      devices: await readDevices(database),
      kernels: groups.map(kernelCounters),
      launches,
      launches_total: total,
    };
    return document('counters', '1.0', data, [...session.issues, ...issuesOf(data)]);
  } finally {
    await database.close();
  }
}

function kernelCounters({ metrics, key: _key, ...group }: KernelGroup): KernelCounters {
  const duration = metricFigure(metrics, 'gpu__time_duration.sum', 'ns');
  const stallStates = stallsOf(metrics);
  return {
    ...group,
    duration_ns: duration,
    total_duration_ns: combine(
      [duration],
      'ns',
      'gpu__time_duration.sum, all launches',
      ([ns]) => ns! * group.launches,
    ),
    bound: speedOfLightBound(metrics),
    sm_throughput: metricFigure(metrics, smThroughput, '%'),
    memory_throughput: metricFigure(metrics, memoryThroughput, '%'),
    dram_throughput: metricFigure(
      metrics,
      [
        'gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed',
        'dram__throughput.avg.pct_of_peak_sustained_elapsed',
      ],
      '%',
    ),
    l1_hit_rate: metricFigure(metrics, 'l1tex__t_sector_hit_rate.pct', '%'),
    l2_hit_rate: metricFigure(metrics, 'lts__t_sector_hit_rate.pct', '%'),
    occupancy: occupancyOf(metrics),
    registers_per_thread: metricFigure(metrics, 'launch__registers_per_thread', 'registers'),
    shared_memory_per_block: sharedMemory(metrics),
    waves: metricFigure(metrics, 'launch__waves_per_multiprocessor', 'waves'),
    tensor_pipe: metricFigure(
      metrics,
      [
        tensorPipe,
        'sm__pipe_tc_cycles_active.avg.pct_of_peak_sustained_elapsed',
        'sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_elapsed',
        'sm__pipe_tensor_subpipe_hmma_cycles_active.avg.pct_of_peak_sustained_elapsed',
        'sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active',
      ],
      '%',
    ),
    stalls: stallStates.stalls,
    stalls_missing: stallStates.missing,
    roofline: kernelRoofline(metrics),
  };
}

/** Total shared memory, or its parts: driver, static and dynamic. */
function sharedMemory(metrics: Metrics) {
  const perBlock = metricFigure(metrics, 'launch__shared_mem_per_block', 'B');
  if (perBlock.value !== null) return perBlock;
  const parts = ['driver', 'static', 'dynamic'].map((part) =>
    metrics.get(`launch__shared_mem_per_block_${part}`),
  );
  if (parts.some((part) => part === undefined)) return perBlock;
  const sum = parts.reduce((total, part) => total + part!.value, 0);
  return figure(sum, 'B', 'launch__shared_mem_per_block_{driver,static,dynamic}');
}

function issuesOf({ kernels, launches, launches_total }: CountersResult): Issue[] {
  const list: Issue[] = [];
  if (kernels.length === 0) {
    const text =
      'The session has no hardware counters; record them with: inferscope run --evaluator ncu -- <command>.';
    list.push({ code: 'no_counters', severity: 'info', text });
  }
  if (launches_total > launches.length) {
    const text = 'Launches after the first 2000 are included in the means, not in the list.';
    list.push({
      code: 'launches_not_listed',
      severity: 'info',
      text,
      count: launches_total - launches.length,
    });
  }
  return list;
}

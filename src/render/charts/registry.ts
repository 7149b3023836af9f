import type { BenchResult } from '../../model/documents/bench.js';
import type { KernelsResult } from '../../model/documents/kernels.js';
import type { MemoryResult } from '../../model/documents/memory-result.js';
import type { MonitorResult } from '../../model/documents/monitor.js';
import type { ServingResult } from '../../model/documents/serving.js';
import type { SweepResult } from '../../model/documents/sweep.js';
import type { TraceResult } from '../../model/documents/trace.js';
import { benchBatchChart } from './bench/batch.js';
import { benchFitChart } from './bench/fit.js';
import { benchMachineChart } from './bench/machine.js';
import { benchSpreadChart } from './bench/spread.js';
import { benchTelemetryChart } from './bench/telemetry.js';
import { benchVariantsChart } from './bench/variants.js';
import type { Chart } from './chart.js';
import { classesChart } from './classes.js';
import type { WaterfallData } from '../../views/explain-series.js';
import { waterfallChart } from './explain/waterfall.js';
import { repeatsChart, stepsChart } from './latency.js';
import { kernelMapChart } from './kernels/map.js';
import { kernelRooflineChart } from './kernels/roofline.js';
import { layersChart } from './layers.js';
import { memoryAllocationsChart } from './memory/allocations.js';
import { memoryPartsChart } from './memory/parts.js';
import { memoryReservedChart, memoryStackChart, memoryTimelineChart } from './memory/timeline.js';
import { memoryChart } from './memory.js';
import { monitorDeviceChart, monitorHostChart } from './monitor/device.js';
import { rooflineChart } from './roofline.js';
import { servingLatencyChart } from './serving/latency.js';
import { servingRateChart } from './serving/rate.js';
import { sweepMapChart } from './sweep/map.js';
import { telemetryChart } from './telemetry.js';
import { traceClassesChart } from './trace/classes.js';
import { densityChart } from './trace/density.js';
import { traceMemoryChart } from './trace/memory.js';
import { phasesChart } from './trace/phases.js';
import { gpuTelemetryChart } from './trace/telemetry.js';
import { timelineChart } from './trace/timeline.js';

/** Every chart of the report by the name that the page's boxes carry in `data-chart`. */
export const charts = {
  classes: classesChart,
  layers: layersChart,
  roofline: rooflineChart,
  timeline: timelineChart,
  memory: memoryChart,
  repeats: repeatsChart,
  steps: stepsChart,
  telemetry: telemetryChart,
} satisfies Record<string, Chart>;

/** Those of the report of a GPU session, which has `timeline`, too. */
export const traceCharts = {
  phases: phasesChart,
  trace_classes: traceClassesChart,
  density: densityChart,
  gpu_telemetry: gpuTelemetryChart,
  trace_memory: traceMemoryChart,
} satisfies Record<string, Chart<TraceResult>>;

/** Those of waterfalls, on pages of any document: their data is a script of its own (`explain-data`). */
export const explainCharts = { waterfall: waterfallChart } satisfies Record<string, Chart<WaterfallData>>;

/** Those of the report of a benchmark. */
export const benchCharts = {
  bench_batch: benchBatchChart,
  bench_spread: benchSpreadChart,
  bench_fit: benchFitChart,
  bench_machine: benchMachineChart,
  bench_variants: benchVariantsChart,
  bench_telemetry: benchTelemetryChart,
} satisfies Record<string, Chart<BenchResult>>;

/** Those of the report of a load test. */
export const servingCharts = {
  serving_latency: servingLatencyChart,
  serving_rate: servingRateChart,
} satisfies Record<string, Chart<ServingResult>>;

/** Those of the report of a recording. */
export const monitorCharts = {
  monitor_device: monitorDeviceChart,
  monitor_host: monitorHostChart,
} satisfies Record<string, Chart<MonitorResult>>;

/** Those of the report of kernels. */
export const kernelCharts = {
  kernel_roofline: kernelRooflineChart,
  kernel_map: kernelMapChart,
} satisfies Record<string, Chart<KernelsResult>>;

/** Those of the report of a memory profile. */
export const memoryCharts = {
  memory_timeline: memoryTimelineChart,
  memory_stack: memoryStackChart,
  memory_reserved: memoryReservedChart,
  memory_parts: memoryPartsChart,
  memory_allocations: memoryAllocationsChart,
} satisfies Record<string, Chart<MemoryResult>>;

/** Those of the report of a sweep. */
export const sweepCharts = { sweep_map: sweepMapChart } satisfies Record<string, Chart<SweepResult>>;

export type ChartName = keyof typeof charts;

/** A chart with the result its page holds: a page has charts of one kind only. */
export function chartNamed(name: string): Chart<unknown> | undefined {
  const all: Record<string, Chart<never>> = {
    ...charts,
    ...traceCharts,
    ...explainCharts,
    ...benchCharts,
    ...servingCharts,
    ...monitorCharts,
    ...kernelCharts,
    ...memoryCharts,
    ...sweepCharts,
  };
  return all[name] as Chart<unknown> | undefined;
}

import { barsChart } from './bars.js';
import type { TraceResult } from '../../model/documents/trace.js';
import type { Chart } from './chart.js';
import { classesChart } from './classes.js';
import { repeatsChart, stepsChart } from './latency.js';
import { layersChart } from './layers.js';
import { memoryChart } from './memory.js';
import { rooflineChart } from './roofline.js';
import { telemetryChart } from './telemetry.js';
import { timelineChart } from './timeline.js';
import { traceClassesChart } from './trace/classes.js';
import { densityChart } from './trace/density.js';
import { phasesChart } from './trace/phases.js';
import { gpuTelemetryChart } from './trace/telemetry.js';
import { gpuTimelineChart } from './trace/timeline.js';

/** Every chart of the report by the name that the page's boxes carry in `data-chart`. */
export const charts = {
  bars: barsChart,
  classes: classesChart,
  layers: layersChart,
  roofline: rooflineChart,
  timeline: timelineChart,
  memory: memoryChart,
  repeats: repeatsChart,
  steps: stepsChart,
  telemetry: telemetryChart,
} satisfies Record<string, Chart>;

/** Those of the report of a GPU session. */
export const traceCharts = {
  phases: phasesChart,
  trace_classes: traceClassesChart,
  gpu_timeline: gpuTimelineChart,
  density: densityChart,
  gpu_telemetry: gpuTelemetryChart,
} satisfies Record<string, Chart<TraceResult>>;

export type ChartName = keyof typeof charts;
export type TraceChartName = keyof typeof traceCharts;

/** A chart with the result its page holds: a page has charts of one kind only. */
export function chartNamed(name: string): Chart<unknown> | undefined {
  const all: Record<string, Chart<never>> = { ...charts, ...traceCharts };
  return all[name] as Chart<unknown> | undefined;
}

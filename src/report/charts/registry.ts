import { barsChart } from './bars.js';
import type { Chart } from './chart.js';
import { classesChart } from './classes.js';
import { repeatsChart, stepsChart } from './latency.js';
import { layersChart } from './layers.js';
import { memoryChart } from './memory.js';
import { rooflineChart } from './roofline.js';
import { telemetryChart } from './telemetry.js';
import { timelineChart } from './timeline.js';

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

export type ChartName = keyof typeof charts;

export function chartNamed(name: string): Chart | undefined {
  return (charts as Record<string, Chart>)[name];
}

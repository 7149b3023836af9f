import type { TraceResult } from '../../../model/documents/trace.js';
import type { Theme } from '../../palette.js';
import type { Chart } from '../chart.js';
import { telemetryHeight, telemetryOption, type Series, type Shade } from '../telemetry.js';
import { phaseLabel } from '../../../vocabulary/stages.js';
import { sampledPhases } from '../../../views/trace-series.js';
import { phaseColor } from './colours.js';

const seriesOf = (result: TraceResult): Series[] =>
  (result.telemetry?.series ?? []).map(({ scope, metric, unit, points }) => ({
    scope,
    metric,
    unit,
    points: points.map(([ns, value]): [number, number] => [ns / 1e6, value]),
  }));

/** Neighbouring stretches of one kind as one: hundreds of decode steps are a single shade. */
export function phaseShades(result: TraceResult, theme: Theme): Shade[] {
  const shades: (Shade & { kind: string })[] = [];
  for (const { kind, start_ns, dur_ns } of result.timeline?.density.phases ?? []) {
    const [from_ms, to_ms] = [start_ns / 1e6, (start_ns + dur_ns) / 1e6];
    const last = shades.at(-1);
    if (last?.kind === kind && from_ms - last.to_ms < 1) last.to_ms = Math.max(last.to_ms, to_ms);
    else shades.push({ kind, name: phaseLabel(kind), from_ms, to_ms, color: phaseColor(kind, theme) });
  }
  return shades;
}

export const gpuTelemetryChart: Chart<TraceResult> = {
  height: (result) => telemetryHeight(seriesOf(result)),
  key: (result, _, theme) =>
    sampledPhases(result).map((kind) => ({ name: phaseLabel(kind), color: phaseColor(kind, theme) })),
  build: (input) => telemetryOption(input, seriesOf(input.result), phaseShades(input.result, input.theme)),
};

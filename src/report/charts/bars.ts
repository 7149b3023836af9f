import type { ProfileResult, StageResult } from '../../model/documents/profile.js';
import { formatMsColumn } from '../format.js';
import { shownBars } from '../bars.js';
import type { Chart } from './chart.js';
import { floating, type FloatingBar, floatingBarsOption, floatingHeight } from './floating-bars.js';

function rowsOf(stage: StageResult | undefined): FloatingBar[] {
  const measured = stage?.duration_ms.value;
  if (!stage || measured === null || measured === undefined) return [];
  const bars = shownBars(stage);
  const texts = formatMsColumn([...bars.map(({ ms }) => ms), measured], 3);
  const named = bars.map(({ label, ...bar }) => ({ ...bar, name: label }));
  return floating(named, { ms: measured, meaning: 'without a profiler' }, texts);
}

const find = (result: ProfileResult, part: string): StageResult | undefined =>
  result.stages.find((stage) => stage.kind === part);

/** From the roofline to the measured time: each bar starts where the one before ended. `part`: stage kind. */
export const barsChart: Chart = {
  height: (result, part) => floatingHeight(rowsOf(find(result, part))),
  build: (input) => floatingBarsOption(input, rowsOf(find(input.result, input.part))),
};

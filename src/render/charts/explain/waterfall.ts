import { formatMsColumn } from '../../../vocabulary/format.js';
import type { WaterfallData } from '../../../views/explain-series.js';
import { barColor, type Theme } from '../../palette.js';
import type { Chart } from '../chart.js';
import { idleCauses } from '../../../vocabulary/idle-causes.js';
import { floating, type FloatingBar, floatingBarsOption, floatingHeight } from '../floating-bars.js';

function rowsOf({ stages }: WaterfallData, part: string): FloatingBar[] {
  const stage = stages.find(({ key }) => key === part);
  if (!stage) return [];
  const { bars, total } = stage;
  return floating(
    bars.map(({ label, note, ...bar }) => ({
      ...bar,
      meaning: note === null ? label : `${label}: ${note}`,
    })),
    total,
    formatMsColumn([...bars.map(({ ms }) => ms), total.ms]),
  );
}

/** Idle time as the phases of a timeline show its causes: in one hue, none of them is a class. */
const colorOf = (id: string, theme: Theme): string =>
  idleCauses[id]?.colour ?? (id.startsWith('host.') ? idleCauses['host']!.colour : barColor(id, theme));

/** From the roofline to the measured time: each bar starts where the one before ended. `part`: stageKey. */
export const waterfallChart: Chart<WaterfallData> = {
  height: (result, part) => floatingHeight(rowsOf(result, part)),
  build: (input) =>
    floatingBarsOption(input, rowsOf(input.result, input.part), {
      colorOf,
      ...(input.result.longest_ms !== undefined && { longest: input.result.longest_ms }),
    }),
};

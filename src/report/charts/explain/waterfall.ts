import { headlineTime, isProfiled } from '../../../model/headline-time.js';
import { formatMsColumn } from '../../format.js';
import { shortName, shownBars, stageKey, type WaterfallData } from '../../../views/explain-series.js';
import { barColor, type Theme } from '../../palette.js';
import type { Chart } from '../chart.js';
import { idleCauses } from '../../../vocabulary/idle-causes.js';
import { floating, type FloatingBar, floatingBarsOption, floatingHeight } from '../floating-bars.js';

function rowsOf({ stages }: WaterfallData, part: string): FloatingBar[] {
  const stage = stages.find((one) => stageKey(one) === part);
  const measured = stage && headlineTime(stage).value;
  if (!stage || !measured) return [];
  const bars = shownBars(stage);
  const texts = formatMsColumn([...bars.map(({ ms }) => ms), measured], 3);
  const confidence = new Map(stage.bars.map((bar) => [bar.id, bar.confidence]));
  return floating(
    bars.map((bar) => ({
      id: bar.id,
      name: shortName(bar),
      meaning: bar.note === null ? bar.label : `${bar.label}: ${bar.note}`,
      ms: bar.ms,
      confidence: confidence.get(bar.id) ?? null,
    })),
    {
      ms: measured,
      meaning: isProfiled(stage) ? 'a mean instance, under the profiler' : 'a mean instance',
    },
    texts,
  );
}

/** Idle time as the phases of a timeline show its causes: in one hue, none of them is a class. */
const colorOf = (id: string, theme: Theme): string =>
  idleCauses[id]?.colour ?? (id.startsWith('host.') ? idleCauses['host']!.colour : barColor(id, theme));

/** From the roofline to the measured time: each bar starts where the one before ended. `part`: stageKey. */
export const waterfallChart: Chart<WaterfallData> = {
  height: (result, part) => floatingHeight(rowsOf(result, part)),
  build: (input) => floatingBarsOption(input, rowsOf(input.result, input.part), { colorOf }),
};

import type { SweepResult } from '../../../model/documents/sweep.js';
import { sweepMaps, type SweepMap } from '../../../views/sweep-maps.js';
import { figureLabel, figureUnit, outcomeLabels } from '../../../vocabulary/sweep.js';
import { formatQuantity } from '../../../vocabulary/format.js';
import { base, type Chart } from '../chart.js';
import { heatMapHeight, heatMapOption } from '../heat-map.js';

/** Dark is much: of the map's own values, on a logarithm where they span more than a factor of ten. */
function shadeOf({ cells }: SweepMap): (value: number | null) => number | null {
  const values = cells.flatMap(({ value }) => (value === null ? [] : [value]));
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const scale = low > 0 && high / low > 10 ? Math.log : (value: number) => value;
  return (value) =>
    value === null ? null : high > low ? (scale(value) - scale(low)) / (scale(high) - scale(low)) : 0.5;
}

/** One figure over two parameters of the sweep. `part` is the number of the map. */
export const sweepMapChart: Chart<SweepResult> = {
  height: (result, part) => heatMapHeight(sweepMaps(result)[Number(part)]?.y.values.length ?? 1),
  build: (input) => {
    const map = sweepMaps(input.result)[Number(input.part)];
    if (!map) return base(input);
    const shade = shadeOf(map);
    return heatMapOption(input, {
      x: map.x,
      y: map.y,
      cells: map.cells.map(({ x, y, run, value }) => {
        const { unit, digits } = figureUnit(map.figure);
        const text = value === null ? outcomeLabels[run.outcome] : formatQuantity(value, unit, digits);
        return {
          x,
          y,
          shade: shade(value),
          text,
          tip: [run.label, `${figureLabel(map.figure)}: ${text}`, ...(run.failure ? [run.failure.what] : [])],
        };
      }),
    });
  },
};

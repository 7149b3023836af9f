import type { BenchResult } from '../../../model/documents/bench.js';
import {
  batchLines,
  batchSizes,
  lineNames,
  machineValues,
  type MachineValue,
} from '../../../views/bench-series.js';
import { formatCount } from '../../../vocabulary/format.js';
import type { Chart } from '../chart.js';
import { type Line, lineKey, linesOption, markOf } from '../lines.js';

const isMachineValue = (part: string): part is MachineValue => part in machineValues;

export const benchMachineChart: Chart<BenchResult> = {
  height: () => 220,
  key: (result) => lineKey(lineNames(result)),
  build: (input) => {
    const part: MachineValue = isMachineValue(input.part) ? input.part : 'memory';
    const { unit, most, of } = machineValues[part];
    const found = batchLines(input.result);
    const sizes = batchSizes(found);
    return linesOption(input, {
      categories: sizes.map(formatCount),
      xName: 'batch size',
      unit,
      ...(most === undefined ? {} : { most }),
      lines: found.map(({ name, points }, index): Line => ({
        ...markOf(index),
        name,
        values: sizes.map((size) => {
          const point = points.find(({ batch_size }) => batch_size === size);
          const figure = point ? of(point) : null;
          if (!figure || figure.value === null) return null;
          return { value: figure.value, ci95: figure.ci95 ?? null, notes: [figure.source] };
        }),
      })),
    });
  },
};

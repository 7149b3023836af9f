import type { BenchPointResult, BenchResult } from '../../../model/documents/bench.js';
import type { Figure } from '../../../model/figure.js';
import { formatCount } from '../../format.js';
import type { Chart } from '../chart.js';
import { type Line, linesOption, markOf } from '../lines.js';
import { batchLines, batchSizes } from './batch.js';

/** What the machine did, by batch; a part of the chart each. */
export const machineValues = {
  gpu_utilization: {
    name: 'GPU utilisation',
    unit: '%',
    most: 105,
    of: (point: BenchPointResult): Figure => point.machine.gpu_utilization_percent,
  },
  decode_idle: {
    name: 'idle in a decode step',
    unit: 'share',
    most: 1.05,
    of: (point: BenchPointResult): Figure => point.device_work.decode_idle_share,
  },
  memory: {
    name: 'memory',
    unit: 'B',
    most: undefined,
    of: ({ machine }: BenchPointResult): Figure =>
      machine.memory_bytes.value === null ? machine.gpu_memory_used_bytes : machine.memory_bytes,
  },
  cpu_cores: {
    name: 'CPU cores busy',
    unit: 'cores',
    most: undefined,
    of: (point: BenchPointResult): Figure => point.machine.cpu_cores_busy,
  },
  power: {
    name: 'power',
    unit: 'W',
    most: undefined,
    of: (point: BenchPointResult): Figure => point.machine.power_w,
  },
} as const;
export type MachineValue = keyof typeof machineValues;

/** Those that any point of the batch sweep has. */
export function knownMachineValues(result: BenchResult): MachineValue[] {
  const points = batchLines(result).flatMap((line) => line.points);
  return (Object.keys(machineValues) as MachineValue[]).filter((name) =>
    points.some((point) => machineValues[name].of(point).value !== null),
  );
}

const isMachineValue = (part: string): part is MachineValue => part in machineValues;

export const benchMachineChart: Chart<BenchResult> = {
  height: () => 220,
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

import type { KernelCounters } from '../model/documents/counters.js';
import { kernelKey } from '../model/kernel-name.js';
import type { Block } from '../views/block.js';
import type { RooflineChart } from '../views/chart.js';
import { tableOf } from '../views/table-of.js';
import { lineMark } from '../vocabulary/colors.js';
import { kernelLabels } from '../vocabulary/kernel-label.js';

export const isSameKernel = ({ name }: KernelCounters, otherName: string): boolean =>
  kernelKey(name) === kernelKey(otherName);

/** The unit that executed most of the FLOP: its peak is the kernel's roofline. */
const unitOf = ({ roofline: { flop_by_unit: units } }: KernelCounters): string =>
  units.reduce((best, unit) => ((unit.flop.value ?? 0) > (best.flop.value ?? 0) ? unit : best)).unit;

const unitLabels: Record<string, string> = {
  tensor: 'tensor cores',
  fp64: 'float64 units',
  fp32: 'float32 units',
  fp16: 'float16 units',
};

/**
 * Kernels under the rooflines of the GPU, from Nsight Compute counters; empty without FLOP and DRAM bytes.
 * @param linkTo link to a kernel; undefined if it has no page
 */
export function ncuRoofline(
  kernels: readonly KernelCounters[],
  linkTo: (kernel: KernelCounters) => string | undefined,
): Block[] {
  const placed = kernels.flatMap((kernel) => {
    const { arithmetic_intensity: intensity, achieved_flops: rate } = kernel.roofline;
    return intensity.value === null || rate.value === null || rate.value <= 0
      ? []
      : [
          {
            kernel,
            intensity: intensity.value,
            rate: rate.value,
            unit: unitOf(kernel),
            link: linkTo(kernel),
          },
        ];
  });
  if (placed.length === 0) return [];
  const units = [...new Set(placed.map(({ unit }) => unit))];
  // Each kernel ran at its own clock: the chart has the highest roofline, and the text each kernel's share of its own.
  const highest = (shares: readonly (number | null)[]): number =>
    Math.max(...shares.map((value) => value ?? 0));
  const bandwidth = highest(placed.map(({ kernel }) => kernel.roofline.peak_dram_bandwidth.value));
  const peaks = units
    .map((unit) => ({
      dtype: unitLabels[unit] ?? unit,
      flops_per_s: highest(
        placed.filter((point) => point.unit === unit).map(({ kernel }) => kernel.roofline.peak_flops.value),
      ),
    }))
    .filter(({ flops_per_s: peak }) => peak > 0);
  const labels = kernelLabels(placed.map(({ kernel }) => kernel));
  const chart: RooflineChart = {
    form: 'roofline',
    slopes: bandwidth > 0 ? [{ name: '', bytes_per_s: bandwidth }] : [],
    peaks,
    ridge: null,
    points: placed.map(({ kernel, intensity, rate, unit, link }) => ({
      name: labels.get(kernel.name)!,
      group: unitLabels[unit] ?? unit,
      ...lineMark(units.indexOf(unit)),
      intensity,
      flops_per_s: rate,
      notes: [
        [{ count: kernel.launches }, ' × ', { figure: kernel.duration_ns }],
        ...(kernel.roofline.roof_share.value === null
          ? []
          : [[{ figure: kernel.roofline.roof_share, utilization: true }, ' of roof'] as const]),
      ],
      ...(link === undefined ? {} : { link }),
    })),
  };
  const number = { numeric: true } as const;
  return [
    {
      type: 'chart',
      title: 'Kernels under the roofs of the GPU, by Nsight Compute',
      label: 'Achieved FLOP/s of kernels against FLOP per byte of DRAM traffic',
      chart,
      behind: tableOf(
        'Kernels of the chart; each was replayed in isolation',
        [
          {
            id: 'kernel',
            head: 'kernel',
            wraps: true,
            cell: ({ kernel, link }) => {
              const text = labels.get(kernel.name)!;
              return link === undefined ? text : { link, text };
            },
          },
          {
            id: 'grid',
            head: 'grid',
            cell: ({ kernel }) => kernel.grid ?? { missing: 'no grid was recorded' },
          },
          {
            id: 'duration_ns',
            head: 'time',
            ...number,
            cell: ({ kernel }) => ({ figure: kernel.duration_ns }),
          },
          {
            id: 'flop_per_byte',
            head: 'FLOP/byte',
            ...number,
            cell: ({ intensity: n }) => ({ n, unit: '' }),
          },
          { id: 'flops', head: 'FLOP/s', ...number, cell: ({ rate: n }) => ({ n, unit: 'FLOP/s' }) },
          {
            id: 'roof_share',
            head: 'of roof',
            ...number,
            cell: ({ kernel }) => ({ figure: kernel.roofline.roof_share, utilization: true }),
          },
        ],
        placed,
      ),
    },
  ];
}

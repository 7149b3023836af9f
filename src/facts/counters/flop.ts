import type { KernelRoofline } from '../../model/documents/counters.js';
import { figure, type Figure, missing } from '../../model/figure.js';
import { combine, type Metrics, valueOf } from './metrics.js';
import { formatQuantity } from '../../vocabulary/format.js';

type Unit = KernelRoofline['flop_by_unit'][number]['unit'];

/** Tensor instructions in use per architecture; without their counters the FLOP count is unknown. */
const tensorCounters: Record<number, { needs: RegExp; name: string }> = {
  8: { needs: /^sm__ops_path_tensor_/, name: 'sm__ops_path_tensor_src_*' },
  9: { needs: /^sm__ops_path_tensor_(op_hgmma_)?src_/, name: 'sm__ops_path_tensor_op_hgmma_src_*' },
  10: { needs: /^sm__ops_path_tensor_op_utchmma_/, name: 'sm__ops_path_tensor_op_utchmma_src_*' },
  12: { needs: /^sm__ops_path_tensor_(op_hmma_)?src_/, name: 'sm__ops_path_tensor_src_*' },
};

/** Integer and one-bit multiplications are operations, not FLOP. */
const integerInput = /src_u?int\d|_[ib]g?mma_/;
/** Groups: instruction (if the metric is for one), and input type. */
const tensorSum = /^sm__ops_path_tensor_(op_[a-z]+_)?src_([a-z]+\d+)\w*\.sum$/;

/** A tensor pipe this busy without counted operations: the counters are for another instruction. */
const busyPercent = 5;

/** FLOP of a launch per unit. `seconds` is the duration of a launch. */
export function flopByUnit(metrics: Metrics, seconds: number | null): { unit: Unit; flop: Figure }[] {
  const vector = (add: string, multiply: string, fma: string, width: number) =>
    combine(
      [
        threadInstructions(metrics, add, seconds),
        threadInstructions(metrics, multiply, seconds),
        threadInstructions(metrics, fma, seconds),
      ],
      'FLOP',
      `smsp__sass_thread_inst_executed_op_{${add},${multiply},${fma}}_pred_on${width > 1 ? `, ${width} values each` : ''}; fma counts twice`,
      ([a, b, c]) => (a! + b! + 2 * c!) * width,
    );
  return [
    { unit: 'tensor', flop: tensorFlop(metrics) },
    { unit: 'fp64', flop: vector('dadd', 'dmul', 'dfma', 1) },
    { unit: 'fp32', flop: vector('fadd', 'fmul', 'ffma', 1) },
    // A half-precision instruction works on a pair (ncu's own derived__…hadd_pred_on_x2 and hfma_pred_on_x4).
    { unit: 'fp16', flop: vector('hadd', 'hmul', 'hfma', 2) },
  ];
}

function tensorFlop(metrics: Metrics): Figure {
  const sums = [...metrics].flatMap(([name, { value }]) => {
    const match = tensorSum.exec(name);
    return match && !integerInput.test(name)
      ? [{ name, value, byInstruction: match[1] !== undefined, type: match[2]! }]
      : [];
  });
  const pipe = valueOf(metrics, tensorPipe);
  if (sums.length === 0) {
    if (pipe === 0) return figure(0, 'FLOP', `${tensorPipe} is 0`);
    return missing(
      'no_tensor_counters',
      'ncu did not collect sm__ops_path_tensor_* (section SpeedOfLight_HierarchicalTensorRooflineChart, --set full)',
    );
  }
  const major = valueOf(metrics, 'device__attribute_compute_capability_major');
  const tensorCounter = major === null ? undefined : tensorCounters[major];
  if (tensorCounter && !sums.some(({ name }) => tensorCounter.needs.test(name))) {
    return missing(
      'no_tensor_counters',
      `on compute capability ${major} tensor work is counted by ${tensorCounter.name}, which ncu did not collect`,
    );
  }
  // …_tensor_src_fp16 is the sum over instructions (…_op_hgmma_src_fp16_sparsity_off). fp8 and fp64 have only the sum.
  const typesByInstruction = new Set(sums.filter((sum) => sum.byInstruction).map(({ type }) => type));
  const usedSums = sums.filter(({ byInstruction, type }) => byInstruction || !typesByInstruction.has(type));
  const flop = usedSums.reduce((total, { value }) => total + value, 0);
  if (flop === 0 && pipe !== null && pipe >= busyPercent) {
    return missing(
      'tensor_not_counted',
      `the tensor pipe was busy ${formatQuantity(pipe, '%')} and no operation was counted: its type or instruction has no counter here`,
    );
  }
  const used = usedSums.filter(({ value }) => value > 0).map(({ name }) => name);
  return figure(flop, 'FLOP', used.length > 0 ? used.join(' + ') : 'sm__ops_path_tensor_*');
}

export const tensorPipe = 'sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed';

/** Executed thread instructions: the sum, or ncu's rate per cycle × cycles per second × time, as in its roofline. */
function threadInstructions(metrics: Metrics, op: string, seconds: number | null): Figure {
  const metric = `smsp__sass_thread_inst_executed_op_${op}_pred_on.sum`;
  const sum = valueOf(metrics, metric);
  if (sum !== null) return figure(sum, 'inst', metric);
  const perCycle = valueOf(metrics, `${metric}.per_cycle_elapsed`);
  const cyclesPerSecond = valueOf(metrics, 'smsp__cycles_elapsed.avg.per_second');
  if (perCycle === 0) return figure(0, 'inst', metric);
  if (perCycle === null || cyclesPerSecond === null || seconds === null) {
    return missing(
      'not_collected',
      `ncu did not collect ${metric} (section SpeedOfLight_RooflineChart, --set full)`,
    );
  }
  return figure(perCycle * cyclesPerSecond * seconds, 'inst', `${metric}.per_cycle_elapsed × cycles`);
}

/**
 * Dense peak of a unit at the clock of this run. The tensor peak is that of the instruction in use (…sparsity_off),
 * because the aggregate states the sparse peak, twice as large.
 */
export function peakOf(metrics: Metrics, unit: Unit): Figure {
  const clock = valueOf(metrics, 'sm__cycles_elapsed.avg.per_second');
  if (clock === null)
    return missing('not_collected', 'ncu did not collect sm__cycles_elapsed.avg.per_second');
  if (unit !== 'tensor') {
    const [metric, flop] = vectorPeaks[unit];
    const peak = valueOf(metrics, metric);
    if (peak === null) return missing('not_collected', `ncu did not collect ${metric}`);
    return figure(peak * flop * clock, 'FLOP/s', `${metric} × ${flop} × SM clock of the run`);
  }
  const used = [...metrics]
    .filter(([name, { value }]) => tensorSum.test(name) && !integerInput.test(name) && value > 0)
    .sort(([x, a], [y, b]) => b.value - a.value || Number(y.includes('_op_')) - Number(x.includes('_op_')))
    .map(([name]) => name);
  for (const name of used) {
    const peak = valueOf(metrics, `${name}.peak_sustained`);
    if (peak === null) continue;
    const sparse = !name.includes('_sparsity_off');
    const factor = sparse && !name.includes('_sparsity_on') ? 0.5 : 1;
    return figure(
      peak * factor * clock,
      'FLOP/s',
      `${name}.peak_sustained${factor === 1 ? '' : ' / 2 (dense)'} × SM clock of the run`,
    );
  }
  return missing(
    'not_collected',
    'ncu did not collect the peak of the tensor instruction used (…sum.peak_sustained)',
  );
}

const ffma = 'sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained';
const vectorPeaks: Record<Exclude<Unit, 'tensor'>, readonly [metric: string, flop: number]> = {
  fp32: [ffma, 2],
  fp64: ['derived__sm__sass_thread_inst_executed_op_dfma_pred_on_x2', 1],
  fp16: ['derived__sm__sass_thread_inst_executed_op_hfma_pred_on_x4', 1],
};

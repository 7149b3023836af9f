import type { OpClass } from '../../model/classes.js';
import type { KernelPlan, KernelResult } from '../../model/documents/kernels.js';
import { figure, missing, type Figure } from '../../model/figure.js';
import { limitingBits, throttleReasonNames } from '../../model/throttle-reasons.js';
import { meanFigure } from '../../model/statistics.js';
import { roofOf, type CaseRoofs } from './roofs.js';
import type { CaseRow, ConditionRow } from './rows.js';

interface CaseContext {
  plan: Pick<KernelPlan, 'device' | 'scope'>;
  roofs: CaseRoofs;
  conditions: readonly ConditionRow[];
}

const classes: Record<string, OpClass> = {
  gemm: 'gemm',
  linear: 'gemm',
  conv2d: 'gemm',
  lstm: 'gemm',
  attention: 'attention',
  'layernorm-gelu': 'norm',
  rmsnorm: 'norm',
  softmax: 'elementwise',
  swiglu: 'elementwise',
  rope: 'elementwise',
  embedding: 'embedding',
  sampling: 'sampling',
};

/** Figures of one case; its rates are computed from its median. */
export function resultOf(row: CaseRow, { plan, roofs, conditions }: CaseContext): KernelResult {
  const { case_id, name, median_ns: median, params } = row;
  const { bound, ...roof } = roofOf({ ...row, kernel: name }, roofs);
  const rate = (work: number) =>
    median === null || median === 0 || work === 0 ? null : (work / median) * 1e9;
  return {
    case: case_id,
    kernel: name,
    class: classes[name] ?? 'other',
    backend: row.backend,
    dtype: row.dtype,
    params: JSON.parse(params) as Record<string, number>,
    outcome: row.outcome,
    text: row.text,
    flops: row.flops,
    bytes: row.bytes,
    runs: row.runs,
    mean_ns: meanOf(row),
    median_ns: median,
    min_ns: row.min_ns,
    max_ns: row.max_ns,
    sd_ns: row.sd_ns,
    p5_ns: row.p5_ns,
    p95_ns: row.p95_ns,
    bytes_per_s: rate(row.bytes),
    flops_per_s: rate(row.flops),
    intensity: row.flops === 0 ? null : row.flops / row.bytes,
    ...roof,
    roof_share: shareOf(roof.roof_ns, median),
    bound: boundOf(row, bound, roof.roof_ns, roofs),
    method: row.runs === 0 ? null : row.method,
    per_sample: row.runs === 0 ? null : row.per_sample,
    rotated_bytes: row.rotated_bytes,
    peak_memory_bytes:
      row.peak_memory_bytes === null
        ? missing('not_reported', 'the framework does not report the memory of one operation')
        : figure(row.peak_memory_bytes, 'B', 'peak of the allocator during the case'),
    max_error: row.max_error,
    ...conditionsOf(case_id, plan.scope, conditions),
  };
}

/** Runs of one process are not independent launches: the interval covers only the variation within it. */
function meanOf({ mean_ns, sd_ns, runs, outcome }: CaseRow): Figure {
  if (mean_ns === null)
    return missing(
      outcome === 'measured' ? 'not_measured' : outcome,
      `it was not measured: ${outcome.replaceAll('_', ' ')}`,
    );
  return meanFigure({ mean: mean_ns, sd: sd_ns, n: runs }, 'ns', 'runs of one process');
}

function shareOf(roof: Figure, median: number | null): Figure {
  if (roof.value === null) return roof;
  if (median === null || median === 0) return missing('not_measured', 'it was not measured');
  return figure(roof.value / median, 'ratio', `${roof.source}; over the median`);
}

/** A case is launch-bound if its roofline limit is shorter than a launch (with graphs: a node). */
function boundOf(
  { method, runs }: CaseRow,
  bound: KernelResult['bound'],
  roof: Figure,
  { launchNs, graphNodeNs }: CaseRoofs,
): KernelResult['bound'] {
  if (runs === 0) return null;
  const launch = method === 'graph' ? graphNodeNs : launchNs;
  return roof.value !== null && launch.value !== null && roof.value < launch.value ? 'latency' : bound;
}

function conditionsOf(caseId: string, gpu: string | null, conditions: readonly ConditionRow[]) {
  const sameCase = conditions.filter(
    ({ case_id, scope }) => case_id === caseId && (gpu === null ? /^cpu\d/.test(scope) : scope === gpu),
  );
  const noSamples = missing('no_samples', 'no sample during the case');
  const mean = (unit: string, ...names: string[]): Figure => {
    for (const name of names) {
      const rows = sameCase.filter(({ metric }) => metric === name);
      const n = rows.reduce((sum, row) => sum + row.n, 0);
      if (n === 0) continue;
      const value = rows.reduce((sum, row) => sum + row.mean * row.n, 0) / n;
      return figure(value, unit, `telemetry: ${name}`, { n });
    }
    return noSamples;
  };
  const bits = sameCase.reduce((set, row) => set | row.bits, 0);
  return {
    clock_mhz: mean('MHz', gpu === null ? 'clock_mhz' : 'sm_clock_mhz'),
    power_w:
      gpu === null
        ? missing('cpu', 'CPU power is not available here')
        : mean('W', 'power_instant_w', 'power_w'),
    throttled_by: throttleReasonNames(bits & limitingBits),
  };
}

import type { BenchPointResult, BenchResult, BenchVariant } from '../../model/documents/bench.js';
import type { StageWaterfall, WaterfallBar } from '../../model/documents/explain.js';
import { type Figure, figure, type MissingFigure } from '../../model/figure.js';
import type { StageShape } from '../../llm/shape.js';
import type { Session } from '../../session/open.js';
import { storedRoofline } from '../artifact.js';
import { analyzeBench } from '../bench/bench.js';
import { meanOf } from '../bench/point.js';
import { benchModel, roofsOf } from '../bench/roof.js';
import type { WorkloadModel } from '../model-work.js';
import { storedGpuRoofline } from '../roofs.js';
import { literal } from '../trace/scope.js';
import type { UtilizationRoofs } from '../utilization/roofs.js';
import { workingSetBytes } from '../utilization/stage.js';
import { necessaryOf, type Necessary, peakLines, type Peaks } from './necessary.js';
import { barWords } from './words.js';

interface Facts {
  model: WorkloadModel | MissingFigure;
  roofs: UtilizationRoofs | MissingFigure;
}

/**
 * Coarse waterfalls of a benchmark's points: what the roofline allows, what kernels took beyond it where the engine watched
 * its device, and the rest, whose cause a benchmark does not see.
 */
export async function benchWaterfalls(session: Session): Promise<StageWaterfall[]> {
  const { workload, hardware } = session.manifest;
  const { data } = await analyzeBench(session);
  if (!workload) return [];
  const rooflines = { cpu: await storedRoofline(session), gpu: await storedGpuRoofline(session) };
  const facts = { model: benchModel(workload), roofs: roofsOf({ workload, hardware }, rooflines) };
  return variantPoints(data).flatMap(({ variant, point }) =>
    (['decode', 'prefill'] as const).flatMap((kind) => {
      const one = waterfallOf(kind, variant, point, facts);
      return one ? [one] : [];
    }),
  );
}

const variantPoints = ({ variants }: BenchResult) =>
  variants.flatMap((variant) =>
    variant.points.filter(({ outcome }) => outcome === 'measured').map((point) => ({ variant, point })),
  );

function waterfallOf(
  kind: 'decode' | 'prefill',
  { execution_id }: BenchVariant,
  point: BenchPointResult,
  { model, roofs }: Facts,
): StageWaterfall | null {
  const { latency, device_work: work } = point;
  const steps = 'p50' in latency.itl_ms ? latency.itl_ms : latency.tpot_ms;
  const time = meanOf(kind === 'decode' ? steps : latency.ttft_ms);
  if (time.value === null || !(time.value > 0)) return null;
  const measured = time.value;
  const shape = shapeOf(kind, point);
  const peaks = 'reason' in roofs ? null : peaksOf(roofs, model, shape);
  const necessary: Necessary | MissingFigure =
    'reason' in model ? model : peaks === null ? (roofs as MissingFigure) : necessaryOf(model, shape, peaks);
  const kernels = kind === 'decode' ? work.decode_kernel_ms : work.prefill_kernel_ms;
  const idleShare = kind === 'decode' ? work.decode_idle_share : work.prefill_idle_share;
  const busyMs = idleShare.value === null ? null : Math.max(0, measured * (1 - idleShare.value));
  const parts = partsOf(necessary, kernels.value, busyMs);
  const told = parts.reduce((sum, { ms }) => sum + ms, 0);
  const bars = [...parts, { id: 'unattributed', ms: measured - told }];
  const peaksMeasured = !('reason' in roofs) && roofs.measuredPeak('float32').value !== null;
  const median = kind === 'decode' ? steps : latency.ttft_ms;
  return {
    kind,
    name: null,
    source: 'bench',
    execution_id,
    point: point.point,
    instances: time.n ?? 1,
    measured_ms: time,
    median_ms: 'p50' in median ? median.p50 : null,
    clock: 'host',
    clock_why: "the engine's own time stamps",
    clean_ms: time,
    roofline_ms:
      'reason' in necessary
        ? necessary
        : figure(
            necessary.rooflineMs,
            'ms',
            `max(Σ FLOPs / peak, Σ bytes / bandwidth): ${necessary.bound}-bound`,
          ),
    roofs: peaks && 'architecture' in model ? peakLines(model, shape, peaks) : [],
    bars: bars.map((bar): WaterfallBar => ({
      id: bar.id,
      ms: bar.ms,
      share: bar.ms / measured,
      count: bar.id.endsWith('.kernels') && kind === 'decode' ? work.decode_kernels.value : null,
      ...barWords(bar.id, { peaksMeasured }),
      confidence: 'low',
      sql: sqlOf(bar.id, bar.ms, { execution_id, point: point.point, kind }, kernels),
      sharpen:
        bar.id === 'roofline' || bar.id === 'serial' ? null : 'inferscope run --evaluator nsys -- <command>',
      note: noteOf(bar.id, bar.ms, busyMs, measured),
      parts: [],
    })),
    sum_error_share: 0,
    rows: [],
    ranks: [{ rank: null, device: null, measured_ms: measured }],
  };
}

function shapeOf(kind: 'decode' | 'prefill', point: BenchPointResult): StageShape {
  const { batch_size: batchSize, input_len, output_len } = point;
  return kind === 'prefill'
    ? { phase: 'prefill', batchSize, newTokens: input_len, contextTokens: 0 }
    : // Step i of output_len − 1 reads a cache of input_len + i tokens: their mean.
      {
        phase: 'decode',
        batchSize,
        newTokens: 1,
        contextTokens: input_len + Math.max(0, output_len - 2) / 2,
      };
}

function peaksOf(roofs: UtilizationRoofs, model: WorkloadModel | MissingFigure, shape: StageShape): Peaks {
  const tokens = shape.contextTokens + shape.newTokens;
  const set = 'reason' in model ? 0 : workingSetBytes(model, shape.batchSize, tokens);
  const first = (measured: Figure, sheet: Figure): Figure => (measured.value === null ? sheet : measured);
  return {
    flops: (dtype) => first(roofs.measuredPeak(dtype), roofs.peak(dtype)),
    bandwidth: first(roofs.measuredBandwidth(set), roofs.bandwidth(set)),
  };
}

function partsOf(
  necessary: Necessary | MissingFigure,
  kernelMs: number | null,
  busyMs: number | null,
): { id: string; ms: number }[] {
  // Kernels of several streams at once take longer together than the device is busy.
  const kernels = kernelMs === null ? null : busyMs === null ? kernelMs : Math.min(kernelMs, busyMs);
  const copies =
    kernels !== null && busyMs !== null && busyMs > kernels
      ? [{ id: 'exposed_copy.all', ms: busyMs - kernels }]
      : [];
  if ('reason' in necessary) {
    return kernels === null ? [] : [{ id: 'kernels.kernels', ms: kernels }, ...copies];
  }
  const oneByOne = [...necessary.byClass].reduce(
    (sum, [name, ms]) => sum + (name === 'sampling' ? 0 : ms),
    0,
  );
  return [
    { id: 'roofline', ms: necessary.rooflineMs },
    { id: 'serial', ms: oneByOne - necessary.rooflineMs },
    ...(kernels === null ? [] : [{ id: 'inefficiency.kernels', ms: kernels - oneByOne }, ...copies]),
  ];
}

function sqlOf(
  id: string,
  ms: number,
  of: { execution_id: string; point: string; kind: string },
  kernels: Figure,
): string | null {
  if (!id.endsWith('.kernels') || kernels.value === null) return null;
  const rest = ms - kernels.value;
  const filter = `execution_id = ${literal(of.execution_id)} AND coalesce(rank, 0) = 0 AND point = ${literal(of.point)} AND kind = ${literal(of.kind)} AND stages > 0`;
  return `SELECT 'launch ' || launch AS what, kernels / stages AS count, kernel_ns / stages / 1e6 / count(*) OVER () AS ms
FROM device_work WHERE ${filter}
UNION ALL SELECT '(necessary time, model arithmetic)', NULL, ${rest} ORDER BY 3 DESC`;
}

function noteOf(id: string, ms: number, busyMs: number | null, measured: number): string | null {
  if (id === 'roofline') return 'max(Σ FLOPs / peak, Σ bytes / bandwidth) of the whole stage';
  if (id === 'serial') return 'Σ over operations of max(FLOPs / peak, bytes / bandwidth), less the roofline';
  if (id === 'unattributed' && busyMs !== null) {
    const idle = measured - busyMs;
    return idle >= 0
      ? `the device is idle for ${idle.toPrecision(3)} ms of it: a benchmark does not see what for`
      : 'the watched iteration kept the device busy for longer than a timed one takes';
  }
  if (id === 'unattributed') {
    return ms < 0
      ? 'faster than the arithmetic allows: model, dtype, sizes or peaks are not those of what ran'
      : "what is not the roofline's: a benchmark does not see its cause";
  }
  if (ms >= 0) return null;
  return 'faster than its necessary time: bytes came from the cache, or model, dtype, sizes or peaks are not those of what ran';
}

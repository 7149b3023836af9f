import { document, type Document, type Issue } from '../../model/document.js';
import { type Gemm, type GemmsResult, gemmsVersion } from '../../model/documents/gemms.js';
import { figure, type Figure, mapFigure, missing } from '../../model/figure.js';
import type { Session } from '../../session/open.js';
import type { SessionDatabase } from '../../session/query.js';
import { deviceOf } from '../device.js';
import { type GpuRoofs, gpuRoofs, readStoredGpuRoofline } from '../roofs.js';
import { type LoggedShape, readLoggedShapes } from './logged-shapes.js';
import { type MeasuredShape, readProfilerShapes } from './profiler-shapes.js';
import { gemmBytes, gemmRoof, peakType, type DTypeRoof, dtypeRoof } from './roof.js';
import { alignmentFaults, elementBytes, flopOf, type GemmShape } from './shape.js';
import { splitsOf, tiling } from './tiling.js';
import { whatIfs } from './what-if.js';

/**
 * The workload's GEMMs: how fast they run, and how they fit tiles, waves and tensor cores. Shapes come from
 * the profiler's operators (with kernel times) and from cuBLAS logs (with algorithms, without times). The sources are
 * listed separately and never summed.
 */
export async function analyzeGemms(
  session: Session,
  { stage = null }: { stage?: string | null } = {},
): Promise<Document<GemmsResult>> {
  const database = await session.connect();
  try {
    const device = await readDeviceFacts(session, database);
    const measured = await readProfilerShapes(database, stage);
    // Logs do not say in which stage a GEMM ran.
    const logged = stage === null ? await readLoggedShapes(database, session.manifest.captures) : [];
    const gemmsOfSession = [
      ...measured.shapes.map((shape) => measuredGemm(shape, device)),
      ...logged.map((shape) => loggedGemm(shape, timeOf(shape, measured.shapes), device)),
    ].sort(byTimeThenFlop);
    const gemms = gemmsOfSession.map((gemm) => ({
      ...gemm,
      what_if: whatIfs(gemm, gemmsOfSession, device.smCount, device.roofs),
    }));
    const data: GemmsResult = {
      gpu: device.gpu,
      sm_count: device.smCount,
      ...(stage === null ? {} : { stage }),
      gemms,
    };
    return document('gemms', gemmsVersion, data, issuesOf(gemms, measured.withoutShapes, stage));
  } finally {
    await database.close();
  }
}

/** Peak and bandwidth that GEMMs of each type are compared with; types without both are left out. */
export async function readGemmRoofs(
  session: Session,
  gemms: readonly Gemm[],
): Promise<Map<string | null, DTypeRoof>> {
  const roofs = gpuRoofs(deviceOf(session.manifest).name, await readStoredGpuRoofline(session));
  const roofByType = new Map<string | null, DTypeRoof>();
  for (const dtype of new Set(gemms.map((gemm) => gemm.dtype))) {
    const roof = dtypeRoof(dtype, roofs);
    if (!('value' in roof)) roofByType.set(dtype, roof);
  }
  return roofByType;
}

interface Device {
  gpu: string | null;
  smCount: Figure;
  roofs: GpuRoofs;
}

async function readDeviceFacts(session: Session, database: SessionDatabase): Promise<Device> {
  const { name: gpu, smCount: recordedSms } = deviceOf(session.manifest);
  const roofs = gpuRoofs(gpu, await readStoredGpuRoofline(session));
  if (recordedSms.value !== null) return { gpu, roofs, smCount: recordedSms };
  const [row] = await database.query<{ n: number | null }>(
    `SELECT max(value) AS n FROM counters WHERE metric IN ('launch__sm_count', 'device__attribute_multiprocessor_count')`,
  );
  const smCount = row?.n
    ? figure(row.n, 'SMs', 'counters: launch__sm_count')
    : missing('no_sm_count', 'no capture of the session has the number of SMs');
  return { gpu, roofs, smCount };
}

type CommonField =
  | 'flop'
  | 'arithmetic_intensity'
  | 'alignment_faults'
  | 'achieved_flops'
  | 'peak_share'
  | 'roof';

function commonFields(
  shape: GemmShape,
  dtype: string | null,
  timeOfCall: Figure,
  { gpu, roofs }: Device,
): Pick<Gemm, CommonField> {
  const flop = flopOf(shape);
  const achieved = mapFigure(
    timeOfCall,
    'FLOP/s',
    `2·M·N·K·batch / ${sourceOf(timeOfCall)}`,
    (ns) => flop / (ns / 1e9),
  );
  const peak: Figure =
    gpu === null
      ? missing('unknown_gpu', 'no capture of the session names the GPU')
      : roofs.mfuFlops(peakType(dtype));
  const share: Figure =
    achieved.value === null || peak.value === null
      ? achieved.value === null
        ? achieved
        : peak
      : figure(achieved.value / peak.value, 'ratio', `achieved / dense peak: ${sourceOf(peak)}`);
  const bytes = elementBytes(dtype);
  return {
    flop,
    arithmetic_intensity:
      bytes === null
        ? missing('unknown_type', `the size of a value of type ${dtype ?? 'unknown'} is not known`)
        : figure(flop / gemmBytes(shape, bytes), 'FLOP/byte', 'FLOP / bytes of A, B and output, each once'),
    achieved_flops: achieved,
    peak_share: share,
    alignment_faults: alignmentFaults(shape, dtype),
    roof: gemmRoof(shape, dtype, timeOfCall, roofs),
  };
}

const sourceOf = (value: Figure) => (value.value === null ? '' : value.source);

function measuredGemm(shape: MeasuredShape, device: Device): Gemm {
  const { execution_id, capture_id, m, n, k, batch, dtype, calls } = shape;
  const times = shape.timed_calls;
  const onCpu = times === 0 && device.gpu === null;
  const noKernels = missing(
    'no_kernels',
    onCpu ? 'these operators ran on the CPU' : 'no kernels are known for these operators',
  );
  const mean =
    times === 0 ? noKernels : figure(shape.time_ns / times, 'ns', 'mean time of its kernels', { n: times });
  return {
    source: 'profiler',
    execution_id,
    capture_id,
    m,
    n,
    k,
    batch,
    dtype,
    compute_type: null,
    layout: null,
    calls,
    made_by: byCalls([...shape.operators].map(([name, count]) => ({ name, calls: count }))),
    stages: [...shape.stages].sort(),
    ...commonFields(shape, dtype, mean, device),
    ...(onCpu ? { roof: { time_ns: noKernels, share: noKernels, bound: null, from: null } } : {}),
    total_time_ns:
      times === 0 ? noKernels : figure(shape.time_ns, 'ns', 'kernels of these operators', { n: times }),
    tilings: byCalls([...shape.tiles.values()]).flatMap(({ tile, kernel, calls: count }) => {
      const found = tiling(shape, tile, count, splitsOf(kernel), device.smCount);
      return found ? [found] : [];
    }),
  };
}

function loggedGemm(shape: LoggedShape, timeOfCall: Figure, device: Device): Gemm {
  const { algos, ...row } = shape;
  const counts = new Map<string, number>();
  for (const { algo, calls } of algos) if (algo !== null) counts.set(algo, (counts.get(algo) ?? 0) + calls);
  return {
    ...row,
    made_by: byCalls([...counts].map(([name, calls]) => ({ name, calls }))),
    stages: [],
    ...commonFields(shape, shape.dtype, timeOfCall, device),
    total_time_ns: missing('log_has_no_times', 'a cuBLAS log has shapes and algorithms, no times'),
    tilings: byCalls(algos).flatMap(({ tile, algo, calls }) => {
      const found = tile === null ? null : tiling(shape, tile, calls, splitsOf(algo), device.smCount);
      return found ? [found] : [];
    }),
  };
}

/** The profiler's time per call for a logged shape, if it has that shape with that type. */
function timeOf(shape: LoggedShape, measured: readonly MeasuredShape[]): Figure {
  const matching = measured.filter(
    (measuredShape) =>
      measuredShape.timed_calls > 0 &&
      measuredShape.m === shape.m &&
      measuredShape.n === shape.n &&
      measuredShape.k === shape.k &&
      measuredShape.batch === shape.batch &&
      measuredShape.dtype === shape.dtype,
  );
  const [mostCalls] = matching.toSorted((x, y) => y.timed_calls - x.timed_calls);
  if (!mostCalls)
    return missing('log_has_no_times', 'a cuBLAS log has no times, and no profiler capture has this shape');
  const source = `mean time of this shape in capture ${mostCalls.capture_id}`;
  return figure(mostCalls.time_ns / mostCalls.timed_calls, 'ns', source, { n: mostCalls.timed_calls });
}

function byCalls<T extends { calls: number }>(list: T[]): T[] {
  return list.sort((x, y) => y.calls - x.calls);
}

function byTimeThenFlop(x: Gemm, y: Gemm): number {
  return (y.total_time_ns.value ?? -1) - (x.total_time_ns.value ?? -1) || y.flop * y.calls - x.flop * x.calls;
}

function issuesOf(gemms: readonly Gemm[], withoutShapes: number, stage: string | null): Issue[] {
  const list: Issue[] = [];
  if (gemms.length === 0 && stage !== null) {
    const text = `No GEMM with a known shape ran in a stage of kind ${stage}; logs have no stages.`;
    list.push({ code: 'no_gemm_shapes', severity: 'info', text });
  } else if (gemms.length === 0) {
    const text =
      'No GEMM has a known shape: record shapes with inferscope run --evaluator torch or --gemm-log.';
    list.push({ code: 'no_gemm_shapes', severity: 'info', text });
  }
  if (withoutShapes > 0) {
    const text = 'GEMMs of operators without recorded shapes are left out (record_shapes=True records them).';
    list.push({ code: 'ops_without_shapes', severity: 'warning', text, count: withoutShapes });
  }
  if (new Set(gemms.map(({ capture_id }) => capture_id)).size > 1) {
    const text =
      'Several captures have shapes, possibly for the same calls (cuBLAS calls cuBLASLt): rows of different captures are not summed.';
    list.push({ code: 'several_gemm_sources', severity: 'info', text });
  }
  return list;
}

import { knownEngine } from '../../llm/memory-request.js';
import type { OpClass } from '../../model/classes.js';
import type { Fusion, Launch } from '../../model/documents/predict.js';
import { headlineTime } from '../../model/headline-time.js';
import { type Figure } from '../../model/figure.js';
import type { Workload } from '../../model/manifest.js';
import { InferscopeError } from '../../model/errors.js';
import { hasSubject } from '../../model/subjects.js';
import type { Session } from '../../session/open.js';
import { usesGraphs } from '../bench/roof.js';
import { float32RanAs } from '../utilization/roofs.js';
import { timelineScope } from '../waterfall/ranks.js';
import { pointLabel } from '../../vocabulary/bench.js';

/** Measurement of a stage of one shape in a session; times per mean instance, ms. */
export interface MeasuredStageTime {
  session: string;
  what: string;
  phase: 'prefill' | 'decode';
  batchSize: number;
  inputLen: number;
  outputLen: number;
  launch: Launch;
  fusion: Fusion;
  ms: Figure;
  /** Busy time of the device; null if not recorded. */
  busyMs: number | null;
  /** Kernel time by class; null without kernels. */
  classesMs: Partial<Record<OpClass, number>> | null;
  /** Idle time of the device by cause (bars of the waterfall); null if not recorded. */
  idleMs: Record<string, number> | null;
}

/** Typed sizes, for sessions without recorded ones. */
interface TypedShape {
  batchSize: number | null;
  inputLen: number | null;
  outputLen: number | null;
}

/** What float32 matrix multiplications ran as in a session. */
export async function recordedFloat32As(session: Session | null): Promise<'float32' | 'tfloat32'> {
  if (session === null || !hasSubject(session.manifest, 'timeline')) return 'float32';
  const database = await session.connect();
  try {
    const { scope } = await timelineScope(session, database);
    return scope.source.gpu_used ? await float32RanAs(database) : 'float32';
  } finally {
    await database.close();
  }
}

/**
 * The measured stages of a benchmark, profile or trace session.
 * @throws E_USAGE for a session without stages
 */
export async function readMeasuredStages(
  session: Session,
  requested: TypedShape,
): Promise<MeasuredStageTime[]> {
  const { manifest } = session;
  const stages = hasSubject(manifest, 'bench')
    ? await readBenchTimes(session)
    : hasSubject(manifest, 'timeline')
      ? await readTraceTimes(session, requested)
      : await readRecordedTimes(session);
  if (stages.length > 0) return stages;
  throw new InferscopeError('E_USAGE', {
    what: `session ${session.id} has no prefill or decode to compare with`,
    why: 'Its stages were not marked, or its batch size and prompt length are not known or differ between prefills.',
    fix: 'Give the sizes that it ran (--batch-size 1 --input-len 128), or a session of inferscope bench or profile.',
  });
}

/** How a workload runs, by its engine and arguments. */
function styleOf(
  workload: Workload,
  engineArgs: Record<string, string> = {},
): { launch: Launch; fusion: Fusion } {
  const eager = knownEngine(workload.engine.name) === 'transformers' && engineArgs['mode'] !== 'compile';
  return {
    launch: usesGraphs(workload, engineArgs) ? 'graph' : 'eager',
    fusion: eager ? 'none' : 'standard',
  };
}

async function readBenchTimes(session: Session): Promise<MeasuredStageTime[]> {
  const { analyzeBench } = await import('../bench/bench.js');
  const { workload } = session.manifest;
  const { data } = await analyzeBench(session);
  if (!workload) return [];
  return data.variants.flatMap((variant) =>
    variant.points.flatMap((point) => {
      if (point.outcome !== 'measured') return [];
      const { ttft_ms: ttft, tpot_ms: tpot } = point.latency;
      const device = point.device_work;
      const stage = (phase: 'prefill' | 'decode'): MeasuredStageTime => {
        const spread = phase === 'prefill' ? ttft : tpot;
        const idle = phase === 'prefill' ? device.prefill_idle_share : device.decode_idle_share;
        const ms: Figure =
          'mean' in spread
            ? {
                value: spread.mean,
                unit: 'ms',
                n: spread.n,
                source: spread.source,
                ...(spread.ci95 ? { ci95: spread.ci95 } : {}),
                ...(spread.ci95_over && { ci95_over: spread.ci95_over }),
              }
            : spread;
        const busyMs = ms.value === null || idle.value === null ? null : ms.value * (1 - idle.value);
        return {
          session: session.id,
          what: `${variant.label}, ${pointLabel(point.point)}`,
          phase,
          batchSize: point.batch_size,
          inputLen: point.input_len,
          outputLen: point.output_len,
          ...styleOf(workload, variant.engine_args),
          ms,
          busyMs,
          classesMs: null,
          idleMs: null,
        };
      };
      return [stage('prefill'), ...(point.output_len > 1 ? [stage('decode')] : [])];
    }),
  );
}

/** Stages without operators, from a profile that was stopped before they were recorded. */
async function readRecordedTimes(session: Session): Promise<MeasuredStageTime[]> {
  const { readRecordedUtilization: recordedUtilization } = await import('../utilization/utilization.js');
  const { workload } = session.manifest;
  if (!workload?.batch_size || !workload.input_len) return [];
  const sizes = {
    batchSize: workload.batch_size,
    inputLen: workload.input_len,
    outputLen: workload.output_len ?? 1,
  };
  const database = await session.connect();
  try {
    const stages = await recordedUtilization(session, database);
    return stages.flatMap(({ kind: phase, time_ms: ms }) => {
      if (phase !== 'prefill' && phase !== 'decode') return [];
      const stageFacts = {
        session: session.id,
        what: `recorded, ${phase}`,
        phase,
        ...sizes,
        ...styleOf(workload),
      };
      return [{ ...stageFacts, ms, busyMs: null, classesMs: null, idleMs: null }];
    });
  } finally {
    await database.close();
  }
}

/** Sizes of the recorded prefills and number of steps after each; null unless all prefills have the same sizes. */
async function recordedSizes(session: Session): Promise<Record<keyof TypedShape, number> | null> {
  const database = await session.connect();
  try {
    const rows = await database.query<{ batchSize: number; inputLen: number; outputLen: number }>(
      `SELECT batch_size AS batchSize, new_tokens // batch_size AS inputLen,
              1 + (SELECT count(*) FROM stages WHERE kind = 'decode' AND NOT warmup) // count(*) AS outputLen
       FROM stages WHERE kind = 'prefill' AND NOT warmup AND batch_size > 0 AND new_tokens > 0 GROUP BY ALL`,
    );
    return rows.length === 1 ? rows[0]! : null;
  } finally {
    await database.close();
  }
}

async function readTraceTimes(session: Session, requested: TypedShape): Promise<MeasuredStageTime[]> {
  const { analyzeCaptures } = await import('../captures.js');
  const { trace } = await analyzeCaptures(session);
  const { workload } = session.manifest;
  const recorded = await recordedSizes(session);
  // Typed sizes are those of a prediction; a session that does not record its own has run in them.
  const batchSize = workload?.batch_size ?? recorded?.batchSize ?? requested.batchSize;
  const inputLen = workload?.input_len ?? recorded?.inputLen ?? requested.inputLen;
  if (!trace || batchSize === null || inputLen === null) return [];
  const outputLen = workload?.output_len ?? recorded?.outputLen ?? requested.outputLen ?? 2;
  const { data } = trace;
  return data.phases.flatMap(({ kind, ...phase }) => {
    if (kind !== 'prefill' && kind !== 'decode') return [];
    const mean: Figure = {
      value: phase.wall.mean_ns / 1e6,
      unit: 'ms',
      n: phase.wall.count,
      source: "stages of the trace, the profiler's own cost included",
    };
    const classes = data.classes.find((className) => className.kind === kind);
    const graphs = data.launches.phases.find((phase) => phase.kind === kind)?.graph_launches ?? 0;
    const style = workload ? styleOf(workload) : { launch: 'eager' as const, fusion: 'none' as const };
    return [
      {
        session: session.id,
        what: `${data.source.attribution.tool}, ${kind}`,
        phase: kind,
        batchSize,
        inputLen,
        outputLen,
        launch: graphs > 0 ? ('graph' as const) : style.launch,
        fusion: style.fusion,
        ms: headlineTime({ clean_ms: phase.clean_ms, measured_ms: mean }),
        busyMs: data.source.gpu_used
          ? phase.busy_ns / 1e6
          : (classes?.rows.reduce((sum, row) => sum + row.per_instance_ns / 1e6, 0) ?? null),
        classesMs: classes
          ? Object.fromEntries(classes.rows.map((row) => [row.class, row.per_instance_ns / 1e6]))
          : null,
        idleMs: data.source.gpu_used
          ? Object.fromEntries(phase.idle_by_cause.map(({ id, ns }) => [id, ns / 1e6]))
          : null,
      },
    ];
  });
}

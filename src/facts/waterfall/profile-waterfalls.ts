import type { StageResult } from '../../model/documents/profile.js';
import type { StageWaterfall, WaterfallBar } from '../../model/documents/explain.js';
import type { Workload } from '../../model/manifest.js';
import { hasRows } from '../../model/subjects.js';
import type { Session } from '../../session/open.js';
import type { SessionDatabase } from '../../session/query.js';
import { missing } from '../../model/figure.js';
import { percentile } from '../../model/statistics.js';
import { workloadModel } from '../model-work.js';
import { readStoredRoofline } from '../artifact.js';
import { traceScope } from '../derived/scope.js';
import { readStages } from '../stages.js';
import { readRecordedSteps } from '../utilization/steps.js';
import { composedStage, readLoadStage, readRepeats } from './composed-stages.js';
import { needFields, necessaryOfSampling } from './group-needs.js';
import { operatorWaterfalls } from './operator-waterfalls.js';
import { describeBar } from './words.js';

/**
 * Waterfalls of a `profile` session of the embedded engine: operator bars (operator-waterfalls.ts) of the profiled
 * execution, the measured time of the clean execution.
 */
export async function profileWaterfalls(
  session: Session,
  database: SessionDatabase,
  workload: Workload,
): Promise<{ stages: StageWaterfall[]; withoutWaterfall: { stage: string; reason: string }[] }> {
  const stageResults = await readStages(session, database, await readStoredRoofline(session));
  const timedStages = stageResults.filter(({ kind }) => kind !== 'sampling');
  const profiled = await profiledStages(session, database);
  const clean = await readRecordedSteps(database, 'clean', { rank: 0, toIterationEnd: true });
  const steps: StageWaterfall[] = [];
  for (const stage of timedStages) {
    const profiledStage = profiled.find(({ kind }) => kind === stage.kind);
    if (!profiledStage || stage.roofline_ms.value === null) continue;
    const times = clean.flatMap(({ kind, wall_ns }) => (kind === stage.kind ? [wall_ns / 1e6] : []));
    times.sort((a, b) => a - b);
    const timed = atCleanTime(profiledStage, stage, await hostTimesOf(database, stage.kind));
    steps.push({ ...timed, median_ms: percentile(times, 0.5), p10_ms: percentile(times, 0.1) });
  }
  const [prefill, decode] = (['prefill', 'decode'] as const).map((kind) =>
    steps.find((stage) => stage.kind === kind),
  );
  const otherStages: (StageWaterfall | null)[] = [];
  for (const kind of ['request', 'warmup'] as const) {
    const repeats = prefill
      ? await readRepeats(database, { executionId: 'clean', point: null, warmup: kind === 'warmup' })
      : null;
    // A request is the sum of its stages, so it needs the bars of a decode step.
    if (prefill && repeats && (decode || repeats.steps === 0)) {
      otherStages.push(composedStage(kind, repeats, { prefill, decode: decode ?? null }));
    }
  }
  const sampling = stageResults.find(({ kind }) => kind === 'sampling');
  if (sampling) otherStages.push(samplingOf(sampling, timedStages, workload));
  otherStages.push(await readLoadStage(database, 'clean', 'profile'));
  return {
    stages: [...steps, ...otherStages.filter((stage) => stage !== null)],
    withoutWaterfall: timedStages
      .filter(({ kind }) => !steps.some((step) => step.kind === kind))
      .map(({ kind, profiled_ms, roofline_ms }) => ({
        stage: kind,
        reason:
          profiled_ms.value === null
            ? profiled_ms.reason.text
            : roofline_ms.value === null
              ? roofline_ms.reason.text
              : 'no operators were recorded',
      })),
  };
}

/** Stages of the profiled execution; empty if it recorded no operators. */
async function profiledStages(session: Session, database: SessionDatabase): Promise<StageWaterfall[]> {
  const { manifest } = session;
  if (!hasRows(manifest, 'ops')) return [];
  const scope = await traceScope(database, manifest);
  return (await operatorWaterfalls(session, database, scope, { scaled: false })).stages;
}

/** Host times of a mean stage of the clean execution, ms: the engine's call, and the sampling between two calls. */
interface HostTimes {
  call: number;
  sampling: number;
}

async function hostTimesOf(database: SessionDatabase, kind: StageResult['kind']): Promise<HostTimes> {
  const rows = await database.query<{ kind: string; ms: number }>(
    `SELECT kind, avg(end_ns - start_ns) / 1e6 AS ms FROM stages
     WHERE execution_id = 'clean' AND NOT coalesce(warmup, false) AND (kind = $1 OR kind = 'sampling' AND step_index IS NOT NULL)
     GROUP BY kind`,
    [kind],
  );
  const msOfKind = (name: string) => rows.find((row) => row.kind === name)?.ms ?? 0;
  return { call: msOfKind(kind), sampling: kind === 'decode' ? msOfKind('sampling') : 0 };
}

/**
 * The stage at its clean time: operators and gaps from the profiled execution, host time around the call from the clean
 * one. The difference goes to the gaps at the edges of the call if that leaves them positive, else to unattributed.
 */
function atCleanTime(
  profiled: StageWaterfall,
  { duration_ms: time, instances }: StageResult,
  { call, sampling }: HostTimes,
): StageWaterfall {
  const measured = time.value ?? 0;
  const hostMsById = new Map([
    ['host.sampling', sampling],
    ['host.loop', measured - call - sampling],
  ]);
  const profiledBars = profiled.bars
    .filter(({ id }) => id !== 'profiler_overhead')
    .map((bar) => ({ ...bar, ms: hostMsById.get(bar.id) ?? bar.ms }));
  const restMs = measured - profiledBars.reduce((sum, { ms }) => sum + ms, 0);
  const adjustedId = profiledBars.some(({ id, ms }) => id === 'host.runtime_call' && ms + restMs >= 0)
    ? 'host.runtime_call'
    : 'unattributed';
  const bars = profiledBars.map((bar): WaterfallBar => {
    const added = bar.id === adjustedId ? restMs : 0;
    const ms = bar.ms + added;
    const sql = hostMsById.has(bar.id)
      ? bar.id === 'host.sampling'
        ? cleanSamplingSql
        : null
      : withConstant(bar.sql, added);
    return {
      ...bar,
      ms,
      share: measured > 0 ? ms / measured : 0,
      sql,
      // No other profiler sees more of the embedded engine.
      ...(bar.id === 'unattributed'
        ? { better_capture: null, confidence_why: 'difference of the clean and the profiled execution' }
        : {}),
    };
  });
  const total = bars.reduce((sum, { ms }) => sum + ms, 0);
  return {
    ...profiled,
    source: 'profile',
    execution_id: 'clean',
    instances,
    measured_ms: time,
    clean_ms: time,
    clock_why: 'the engine computes on the thread that calls it',
    bars,
    sum_error_share: measured > 0 ? Math.abs(total - measured) / measured : 0,
    // Clean instances have no operators, and the profiled ones are slowed down.
    rows: [],
    ranks: [{ rank: null, device: null, measured_ms: measured }],
  };
}

const cleanSamplingSql =
  "SELECT 'sampling' AS what, 1 AS count, avg(end_ns - start_ns) / 1e6 AS ms FROM stages WHERE execution_id = 'clean' AND kind = 'sampling' AND NOT warmup AND step_index IS NOT NULL";

const withConstant = (sql: string | null, ms: number): string | null =>
  sql === null || Math.abs(ms) < 1e-9
    ? sql
    : `SELECT * FROM (${sql}) UNION ALL SELECT '(difference to the clean execution)', NULL, ${ms}`;

/**
 * Roofline of sampling: read the logits once at the memory bandwidth of the step around it. The remaining time is host
 * time.
 */
function samplingOf(
  { duration_ms: time, instances }: StageResult,
  steps: readonly StageResult[],
  workload: Workload,
): StageWaterfall | null {
  if (time.value === null) return null;
  const model = workloadModel(workload);
  const bandwidth =
    steps.find(({ kind }) => kind === 'decode')?.bandwidth_bytes_per_s ??
    missing('no_roofline', "this machine's roofline was not measured");
  const need =
    'reason' in model
      ? model
      : necessaryOfSampling(
          workload.batch_size ?? 1,
          model,
          { flops: () => bandwidth, bandwidth },
          new Map(),
        );
  const rooflineMs = 'reason' in need ? null : need.rooflineMs;
  const parts = [
    ...(rooflineMs === null ? [] : [{ id: 'roofline', ms: rooflineMs }]),
    { id: 'host.sampling', ms: time.value - (rooflineMs ?? 0) },
    { id: 'unattributed', ms: 0 },
  ];
  const measured = time.value;
  return {
    kind: 'sampling',
    name: null,
    source: 'profile',
    execution_id: 'clean',
    point: null,
    instances,
    measured_ms: time,
    median_ms: null,
    p10_ms: null,
    clock: 'host',
    clock_why: 'the host samples the tokens',
    clean_ms: time,
    ...needFields(need),
    roofs: [],
    bars: parts.map(({ id, ms }) => ({
      id,
      ms,
      share: ms / measured,
      count: null,
      ...describeBar(id, { peaksMeasured: true, kind: 'sampling' }),
      better_capture: null,
      sql: id === 'host.sampling' ? samplingSql(rooflineMs ?? 0) : null,
      note:
        id === 'roofline'
          ? 'logits read once, token id written: bytes / bandwidth'
          : ms < 0
            ? 'faster than its roofline limit: the logits were in a faster cache'
            : null,
      parts: [],
    })),
    sum_error_share: 0,
    rows: [],
    ranks: [{ rank: null, device: null, measured_ms: measured }],
  };
}

/** The mean over repeats, like meanOverLaunches, so that each repeat counts once. */
const samplingSql = (rooflineMs: number): string =>
  `SELECT 'sampling' AS what, 1 AS count, avg(ms) AS ms FROM (
  SELECT avg(s.end_ns - s.start_ns) / 1e6 AS ms
  FROM stages s JOIN iterations i ON i.execution_id = s.execution_id AND i.pid = s.pid AND i.iteration = s.iteration
  WHERE s.execution_id = 'clean' AND s.kind = 'sampling' AND NOT s.warmup GROUP BY s.pid, s.iteration)
UNION ALL SELECT '(roofline)', NULL, ${-rooflineMs}`;

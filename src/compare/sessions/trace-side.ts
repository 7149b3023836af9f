import { stepKinds } from '../../model/record.js';
import { headlineTime, phaseTime } from '../../model/headline-time.js';
import { missing, type Figure } from '../../model/figure.js';
import type { OpClass } from '../../model/classes.js';
import type { TracePhase } from '../../model/documents/trace.js';
import type { UtilizationStage } from '../../model/documents/utilization.js';
import { meanFigure } from '../../model/statistics.js';
import type { Session } from '../../session/open.js';
import { readPhases } from '../../facts/trace/phases.js';
import { byPhaseSql } from '../../facts/trace/step-places.js';
import { timelineScope } from '../../facts/waterfall/ranks.js';
import type { TraceScope } from '../../facts/trace/scope.js';
import { readTelemetry } from '../../facts/trace/telemetry.js';
import { windowClocks } from '../../facts/trace/windows.js';
import { utilizationOfTrace } from '../../facts/utilization/utilization.js';
import { yieldedTokens } from '../../facts/utilization/yielded-tokens.js';
import type { Side, SideKernel } from './side.js';
import { kernelLabel } from '../../vocabulary/kernel-label.js';
import { rankName } from '../../vocabulary/ranks.js';

/** Phases with kernels to compare. Warm-up and loading vary by chance, so only their times are compared. */
const comparedPhases = new Set([...stepKinds, 'training', 'sampling', 'outside']);

/** A timeline reduced for comparison: kernels of a GPU, or operators of a program without one. */
export async function traceSide(session: Session): Promise<Side> {
  const database = await session.connect();
  try {
    const { scope, shown } = await timelineScope(session, database);
    const clocks = await windowClocks(scope);
    const phaseResult = await readPhases(scope, clocks);
    const utilization = await utilizationOfTrace(session, scope, clocks);
    const { attribution, focus } = scope.source;
    const { captures } = session.manifest;
    const profiler = captures.find(({ capture_id: id }) => id === attribution.capture_id)?.tool.name;
    const operators = await attentionOperators(scope);
    const kernels = await (scope.source.gpu_used ? kernelsOf : operatorsOf)(scope, phaseResult);
    return {
      session,
      source: `${attribution.tool}, execution ${attribution.execution_id}, ${rankName(focus)}`,
      ...(profiler !== undefined && { profiler }),
      ...(shown && { whyRank: shown.why }),
      focus: {
        ...(focus.rank === null ? {} : { rank: focus.rank }),
        ...(focus.device === null ? {} : { device: focus.device }),
      },
      waterfalls: [],
      ranks: null,
      stages: phaseResult.map((phase) => ({
        phase: phase.kind,
        ...stageValue(
          phase,
          scope.source.gpu_used ? null : kernels.filter((kernel) => kernel.phase === phase.kind),
          utilization?.stages.filter(({ kind }) => kind === phase.kind) ?? [],
        ),
        is_clean: !phaseTime(phase).profiled,
        profiled_ms: profiledTime(phase),
        batch_sizes: phase.by_batch.map(({ batch_size }) => batch_size),
      })),
      kernels,
      attention_operators: operators,
      gemms: await gemmSequences(scope, phaseResult),
      clocks: await clocksOf(scope),
    };
  } finally {
    await database.close();
  }
}

async function attentionOperators({ database }: TraceScope): Promise<string[] | null> {
  if ((await database.query('SELECT 1 FROM phase_ops LIMIT 1')).length === 0) return null;
  const rows = await database.query<{ name: string }>(
    `SELECT DISTINCT name FROM phase_ops WHERE name LIKE '%attention%'`,
  );
  return rows.map(({ name }) => name);
}

function profiledTime(phase: TracePhase): Figure {
  const { mean_ns, sd_ns, count: n } = phase.wall;
  const wall = { mean: mean_ns / 1e6, sd: sd_ns === null ? null : sd_ns / 1e6, n };
  return meanFigure(wall, 'ms', 'windows under the profiler, within one process');
}

/**
 * @param operators of a program without a GPU, else null
 * @param sizedStages stages of its kind, one per batch size
 */
function stageValue(
  phase: TracePhase,
  operators: readonly SideKernel[] | null,
  sizedStages: readonly UtilizationStage[],
): Pick<Side['stages'][number], 'value' | 'mfu_ms'> {
  const onlyStage = sizedStages.length === 1 ? sizedStages[0]! : null;
  const value = {
    instances: phase.instances,
    duration_ms: headlineTime({ clean_ms: phase.clean_ms, measured_ms: profiledTime(phase) }),
    busy_ms: operators === null ? phase.busy_ns / 1e6 : operatorTime(operators),
    main_cause: phase.main_cause,
    kernels: operators === null ? phase.kernels : null,
    launches: operators === null ? phase.launches : null,
    tokens: meanTokens(sizedStages),
    mfu:
      onlyStage?.mfu ??
      missing(
        sizedStages.length > 1 ? 'several_batch_sizes' : 'no_sizes',
        sizedStages.length > 1
          ? 'the stage ran with several batch sizes'
          : 'the tokens of the stage are not known',
      ),
  };
  return { value, mfu_ms: onlyStage?.time_ms.value ?? null };
}

/** Tokens that a mean step yields, over steps of all sizes; null if not known of some. */
function meanTokens(sizedStages: readonly UtilizationStage[]): number | null {
  let [tokens, steps] = [0, 0];
  for (const stage of sizedStages) {
    const yielded = yieldedTokens(stage);
    if (yielded === null) return null;
    tokens += yielded * stage.steps;
    steps += stage.steps;
  }
  return steps === 0 ? null : tokens / steps;
}

/** Null if none was recorded. */
const operatorTime = (operators: readonly SideKernel[]): number | null =>
  operators.length === 0 ? null : operators.reduce((sum, { ms }) => sum + ms, 0);

const kernelsOf = (scope: TraceScope, phases: readonly TracePhase[]): Promise<SideKernel[]> =>
  rowsOf(
    scope,
    phases,
    `SELECT phase, name, any_value(short_name) AS short_name, arg_max(class, (total_ns, class)) AS class,
            any_value(tile) AS tile, sum(count)::BIGINT AS count, sum(total_ns)::DOUBLE AS total_ns
     FROM (SELECT phase, coalesce(name, short_name, '') AS name, any_value(short_name) AS short_name, class,
                  any_value(tile) AS tile, count(*) AS count, sum(dur_ns) AS total_ns
           FROM ${byPhaseSql('phase_kernels')} GROUP BY 1, 2, class)
     GROUP BY 1, 2`,
  );

/** Operators by self time, with one row per role for those in decoder layers: "/layers.N/attn/qkv". */
const operatorsOf = (scope: TraceScope, phases: readonly TracePhase[]): Promise<SideKernel[]> =>
  rowsOf(
    scope,
    phases,
    `SELECT phase, regexp_replace(coalesce(name, op_type, ''), '([./_])\\d+', '\\1N', 'g') AS name, NULL AS short_name,
            any_value(class) AS class, NULL AS tile, count(*) AS count, sum(coalesce(self_dur_ns, dur_ns))::DOUBLE AS total_ns
     FROM ${byPhaseSql('phase_ops')} WHERE op_type IS DISTINCT FROM 'python_function' GROUP BY 1, 2`,
  );

async function rowsOf(
  { database }: TraceScope,
  phases: readonly TracePhase[],
  sql: string,
): Promise<SideKernel[]> {
  const rows = await database.query<{
    phase: string;
    name: string;
    short_name: string | null;
    class: OpClass | null;
    tile: string | null;
    count: number;
    total_ns: number;
  }>(sql);
  const hasMarkedPhases = phases.some(({ kind }) => kind !== 'outside');
  return rows
    .filter(({ phase }) => comparedPhases.has(phase) && (phase !== 'outside' || !hasMarkedPhases))
    .map((row) => {
      const instances = phases.find(({ kind }) => kind === row.phase)?.instances ?? 1;
      return {
        phase: row.phase,
        name: row.name,
        short_name: row.short_name ?? row.name,
        class: row.class ?? 'other',
        tile: row.tile,
        count: row.count / instances,
        ms: row.total_ns / instances / 1e6,
        mean_ns: row.total_ns / row.count,
      };
    });
}

/** GEMMs of the middle instance of each phase, in execution order, because the first ones may still be warming up. */
async function gemmSequences(
  { database }: TraceScope,
  phases: readonly TracePhase[],
): Promise<Side['gemms']> {
  const sequences: Side['gemms'] = [];
  for (const { kind, instances } of phases) {
    if (!stepKinds.some((step) => step === kind)) continue;
    const middle = Math.floor((instances - 1) / 2);
    const rows = await database.query<{ tile: string | null; name: string }>(
      `WITH middle AS (SELECT stage_id FROM windows WHERE kind = '${kind}' ORDER BY start_ns LIMIT 1 OFFSET ${middle})
       SELECT tile, coalesce(name, short_name) AS name FROM phase_kernels
       WHERE class = 'gemm' AND step_id = (SELECT stage_id FROM middle) ORDER BY start_ns`,
    );
    if (rows.length > 0)
      sequences.push({ phase: kind, tiles: rows.map(({ tile, name }) => tile ?? kernelLabel(name)) });
  }
  return sequences;
}

/**
 * Mean clocks, power and temperature of each GPU in the compared phases, because idle clocks do not describe a step; over all samples
 * if none is there.
 */
async function clocksOf(scope: TraceScope): Promise<Side['clocks']> {
  const sampled = await readTelemetry(scope);
  const metrics = new Set(['sm_clock_mhz', 'memory_clock_mhz', 'power_w', 'power_limit_w', 'temperature_c']);
  return (sampled?.series ?? [])
    .filter(({ metric, scope: gpu }) => metrics.has(metric) && /^gpu\d+$/.test(gpu))
    .map(({ scope: gpu, metric, mean, phases: sampledPhases }) => {
      const phaseSamples = sampledPhases.filter(({ kind }) => comparedPhases.has(kind));
      const samples = phaseSamples.reduce((sum, row) => sum + row.samples, 0);
      const phaseMean =
        samples > 0 ? phaseSamples.reduce((sum, row) => sum + row.samples * row.mean, 0) / samples : mean;
      return { gpu, metric, mean: phaseMean };
    });
}

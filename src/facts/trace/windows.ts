import { kindsSql, stepKinds } from '../../model/record.js';
import type { PhaseKind, TraceSource } from '../../model/documents/trace.js';
import { plural } from '../../vocabulary/format.js';
import { phaseLabel } from '../../vocabulary/stages.js';
import { literal, type TraceScope } from './scope.js';
import { placedTransfersSql, withTransfersSql } from './step-transfers.js';

export interface PhaseClock {
  kind: PhaseKind;
  clock: 'host' | 'device';
  clockWhy: string;
}

/** Phases that follow one another; `other` are numbered steps of unknown kind (ProfilerStep#3). */
const steps: readonly PhaseKind[] = [...stepKinds, 'training', 'other'];

/**
 * One row per phase instance, with its ends on the host and device clocks and those of its sends and receives. If the engine recorded its repeats, the last
 * decode step ends with its repeat, and the stages of a warm-up repeat are one instance.
 */
export const instancesSql = (source: TraceSource): string => `WITH repeats AS (
       SELECT pid, iteration, max(end_ns) AS end_ns FROM iterations
       WHERE execution_id = ${literal(source.attribution.execution_id)} AND capture_id = ${literal(source.attribution.stages_capture_id ?? null)} GROUP BY ALL),
     transfers AS (
       SELECT step_id AS stage_id, min(start_ns) AS transfers_from_ns, max(start_ns + dur_ns) AS transfers_end_ns
       FROM (${placedTransfersSql(`capture_id = ${literal(source.attribution.capture_id)} AND rank IS NOT DISTINCT FROM ${literal(source.focus.rank)}`)}) WHERE between_steps GROUP BY ALL),
     first_stages AS (
       SELECT s.stage_id, s.phase AS kind, s.raw_name, s.pid, s.tid, s.iteration, s.step_index, s.start_ns,
              CASE WHEN s.phase = 'warmup' THEN coalesce(r.end_ns, s.end_ns) ELSE s.end_ns END AS end_ns, r.end_ns AS repeat_end_ns,
              s.device_start_ns, s.device_end_ns
       FROM phase_stages s LEFT JOIN stages_in_phases parent ON parent.stage_id = s.parent_id
       LEFT JOIN repeats r ON r.pid = s.pid AND r.iteration = s.iteration
       WHERE s.stage_id = s.phase_id AND s.end_ns IS NOT NULL
         AND NOT (s.phase IN ('warmup', 'load') AND parent.kind IS NOT DISTINCT FROM s.phase)
       QUALIFY s.phase <> 'warmup' OR r.end_ns IS NULL
         OR row_number() OVER (PARTITION BY s.phase, s.pid, s.iteration ORDER BY s.start_ns, s.stage_id) = 1),
     steps AS (
       SELECT stage_id, lead(start_ns) OVER thread AS next_ns, lead(device_start_ns) OVER thread AS device_next_ns,
              lead(kind) OVER thread AS next_kind, lead(iteration) OVER thread AS next_iteration
       FROM first_stages WHERE kind IN ${kindsSql(steps)} WINDOW thread AS (PARTITION BY pid, tid ORDER BY start_ns, stage_id))
     SELECT first_stages.* EXCLUDE (next_ns, device_next_ns, followed, repeat_end_ns),
            CASE WHEN followed THEN next_ns WHEN kind = 'decode' THEN coalesce(repeat_end_ns, end_ns) ELSE end_ns END AS host_end_ns,
            CASE WHEN followed THEN device_next_ns ELSE device_end_ns END AS device_until_ns, transfers_from_ns, transfers_end_ns
     FROM (SELECT first_stages.*, next_ns, device_next_ns,
                  coalesce((kind IN ('decode', 'mixed') AND next_kind IN ('decode', 'mixed') OR kind IN ('training', 'other') AND next_kind = kind)
                    AND next_iteration IS NOT DISTINCT FROM iteration, false) AS followed
           FROM first_stages LEFT JOIN steps USING (stage_id)) first_stages LEFT JOIN transfers USING (stage_id)`;

/**
 * Windows of `instances`, by the clock of their kind. Sends and receives between steps extend them.
 * A capture without phases is one window, `outside`.
 */
export function windowsSql(clocks: readonly PhaseClock[], { start_ns, end_ns }: TraceSource): string {
  if (clocks.some(({ kind }) => kind === 'outside'))
    return `SELECT 'outside' AS kind, 0::BIGINT AS stage_id, 'whole capture' AS raw_name, NULL::BIGINT AS iteration, NULL::BIGINT AS step_index, ${start_ns}::BIGINT AS start_ns, ${end_ns}::BIGINT AS end_ns`;
  const onDevice = clocks.filter(({ clock }) => clock === 'device').map(({ kind }) => `'${kind}'`);
  const device = `kind IN (${onDevice.join(', ') || 'NULL'})`;
  const fromDevice =
    onDevice.length === 0 ? 'device_start_ns' : `greatest(device_start_ns, ${ownStartSql(device)})`;
  return `SELECT kind, stage_id, raw_name, iteration, step_index, from_ns AS start_ns, greatest(until_ns, from_ns) AS end_ns
     FROM (${withTransfersSql(
       `SELECT *, CASE WHEN ${device} THEN ${fromDevice} ELSE start_ns END AS from_ns, CASE WHEN ${device} THEN device_until_ns ELSE host_end_ns END AS until_ns FROM instances stages`,
       "pid, tid, kind = 'sampling'",
     )})`;
}

/**
 * SQL of when the first step of a capture starts on its main stream, if that has no earlier kernel: until then the device may do work that
 * was launched before the capture, and a kernel of another stream does not show the start of the step. Null for other steps.
 */
const ownStartSql = (device: string): string =>
  `(WITH first_step AS (SELECT stage_id FROM instances WHERE ${device} AND device_start_ns IS NOT NULL ORDER BY device_start_ns, stage_id LIMIT 1),
     main AS (SELECT k.stream, min(k.start_ns) AS from_ns FROM rank_kernels k JOIN stage_places p USING (stage_id)
       WHERE p.step_id = (SELECT stage_id FROM first_step) GROUP BY k.stream ORDER BY sum(k.dur_ns) DESC, k.stream LIMIT 1)
     SELECT from_ns FROM main, first_step WHERE first_step.stage_id = stages.stage_id
       AND from_ns = (SELECT min(start_ns) FROM rank_kernels k WHERE k.stream = main.stream))`;

const clocksOf = new WeakMap<TraceScope, Promise<PhaseClock[]>>();

/**
 * The clock of each kind of phase (docs/concepts/stages-and-clocks.md): the host range if the program waits for the
 * device in every step, else the device's first activity, because host ranges of programs that run ahead do not show
 * when the work ran. A decode or mixed step runs to the start of the next one of its thread and iteration, a training or
 * numbered step to the next one of its kind. Warm-up is one instance per outermost range, or per repeat. A capture without phases, or with almost no work in them, is one window, `outside`.
 */
export function windowClocks(scope: TraceScope): Promise<PhaseClock[]> {
  const clocks = clocksOf.get(scope) ?? readClocks(scope);
  clocksOf.set(scope, clocks);
  return clocks;
}

/** Below this share of the capture's time, marked steps may not contain the device's work. */
const minStepsShare = 0.1;
/** Minimum share of kernel time in marked stages. */
const minMarkedShare = 0.1;

/** Why the capture is one stage although stages are marked; null if it is not. */
async function whyUnmarked(
  { database, source, need }: TraceScope,
  kinds: readonly { kind: PhaseKind; ns: number }[],
): Promise<string | null> {
  if (kinds.length === 0) return 'stages are not marked';
  const stepPhases = kinds.filter(({ kind }) => steps.includes(kind));
  const stepNs = stepPhases.reduce((sum, { ns }) => sum + ns, 0);
  if (stepNs >= minStepsShare * (source.end_ns - source.start_ns)) return null;
  await need(
    ...(source.gpu_used ? (['rank_kernels', 'stages_in_phases'] as const) : (['rank_ops'] as const)),
  );
  const [work] = await database.query<{ marked: number; total: number }>(
    source.gpu_used ? markedKernelsSql : markedOperatorsSql,
  );
  if (!work || work.marked >= minMarkedShare * work.total) return null;
  return `the marked stages contain less than a tenth of the ${source.gpu_used ? 'kernel' : 'operator'} time`;
}

const markedKernelsSql = `SELECT coalesce(sum(dur_ns) FILTER (stage_id IN (SELECT stage_id FROM stages_in_phases)), 0)::DOUBLE AS marked,
       coalesce(sum(dur_ns), 0)::DOUBLE AS total FROM rank_kernels`;

/** Of a program without a GPU: its operators on the thread with the most of them. */
const markedOperatorsSql = `WITH busiest AS (SELECT pid, tid FROM rank_ops GROUP BY ALL ORDER BY sum(coalesce(self_dur_ns, dur_ns)) DESC LIMIT 1),
     op AS (SELECT start_ns, coalesce(self_dur_ns, dur_ns) AS ns FROM rank_ops SEMI JOIN busiest USING (pid, tid) WHERE op_type IS DISTINCT FROM 'python_function')
     SELECT coalesce(sum(ns) FILTER (EXISTS (SELECT 1 FROM instances i WHERE op.start_ns >= i.start_ns AND op.start_ns < i.host_end_ns)), 0)::DOUBLE AS marked,
            coalesce(sum(ns), 0)::DOUBLE AS total FROM op`;

/**
 * The clock of ranges of one kind or name: the host's if the device was done before every range ended, or if a range launched nothing.
 * @param noun names an instance in the reason
 */
export function rangeClock(
  { n, device_after, no_launch }: { n: number; device_after: number; no_launch: number },
  noun: string,
): Pick<PhaseClock, 'clock' | 'clockWhy'> {
  if (device_after === 0)
    return { clock: 'host', clockWhy: 'the device was done before the range ended, in every instance' };
  return no_launch > 0
    ? { clock: 'host', clockWhy: `${no_launch} of ${n} instances launched nothing on the device` }
    : {
        clock: 'device',
        clockWhy: `${device_after === n ? `in every ${noun}` : `in ${device_after} of ${plural(n, noun)}`} the device was still busy after its range`,
      };
}

async function readClocks(scope: TraceScope): Promise<PhaseClock[]> {
  await scope.need('instances');
  const kinds = await scope.database.query<{
    kind: PhaseKind;
    n: number;
    ns: number;
    device_after: number;
    no_launch: number;
  }>(
    `SELECT kind, count(*) AS n, coalesce(sum(host_end_ns - start_ns), 0)::DOUBLE AS ns, count_if(device_end_ns > host_end_ns) AS device_after,
            count_if(device_start_ns IS NULL OR device_until_ns IS NULL) AS no_launch
     FROM instances GROUP BY kind ORDER BY kind`,
  );
  const clocks = kinds.map((row): PhaseClock => {
    const { kind } = row;
    const clock = rangeClock(row, steps.includes(kind) ? phaseLabel(kind) : 'instance');
    return kind === 'sampling' || steps.includes(kind) || clock.clock === 'host'
      ? { kind, ...clock }
      : { kind, clock: 'host', clockWhy: `${clock.clockWhy}, but only steps are timed on the device` };
  });
  // Consecutive phases (warm-up, prefill, decode) should use one clock: otherwise the end of one and the start of the
  // next would overlap. The kind of a step that launched nothing has no device times, so then each keeps its own.
  const withoutLaunch = new Set(kinds.filter((row) => row.no_launch > 0).map(({ kind }) => kind));
  const deviceStep = clocks.find(({ kind, clock }) => steps.includes(kind) && clock === 'device');
  const stepWithoutLaunch = steps.some((kind) => withoutLaunch.has(kind));
  if (deviceStep && !stepWithoutLaunch) {
    const sharing = clocks.filter(
      ({ kind }) => steps.includes(kind) || (kind === 'warmup' && !withoutLaunch.has('warmup')),
    );
    // The reason names the steps of one kind, and is shown with each.
    const clockWhy =
      sharing.length > 1 ? `all steps share one clock, and ${deviceStep.clockWhy}` : deviceStep.clockWhy;
    for (const clock of sharing) Object.assign(clock, { clock: 'device', clockWhy });
  }
  const unmarked = await whyUnmarked(scope, kinds);
  if (unmarked === null) return clocks;
  return [
    { kind: 'outside', clock: 'device', clockWhy: `${unmarked}, so from the first to the last activity` },
  ];
}

import { classOfBar, hostPart } from '../../model/bars.js';
import { explainedBars } from '../../model/headline-time.js';
import type { OpClass } from '../../model/classes.js';
import type { StageWaterfall, WaterfallBar } from '../../model/documents/explain.js';
import { missing, type MissingFigure } from '../../model/figure.js';
import { mean, meanFigure, percentile, standardDeviation } from '../../model/statistics.js';
import type { Session } from '../../session/open.js';
import type { SessionDatabase } from '../../session/query.js';
import { readStoredRoofline } from '../artifact.js';
import { roofsOf } from '../bench/roof.js';
import { workloadModel } from '../model-work.js';
import { removeProfilerOverhead } from '../without-profiler.js';
import { cleanTimeOf, profiledOnly } from '../trace/clean-time.js';
import { literal, type TraceScope } from '../trace/scope.js';
import { plural } from '../../vocabulary/format.js';
import { shapeOf } from '../utilization/groups.js';
import type { SizedStep } from '../utilization/sizes.js';
import { cleanTimeNote, profilerNote } from './bar-facts.js';
import { orderedIds } from './bar-order.js';
import { peaksAt } from './bench-waterfalls.js';
import { needFields } from './group-needs.js';
import { groupSteps, sequencesOfGroup } from './group-steps.js';
import { meanNecessary, type NecessaryTime, peakLines, type Peaks } from './necessary.js';
import { type Part, splitOf } from './split.js';
import { stageGroups } from './stage-groups.js';
import type { TimelineWaterfalls } from './waterfall.js';
import { describeBar } from './words.js';
import type { StageGroup } from './stage-group.js';

const maxRows = 64;

/**
 * Waterfalls of a program without a GPU under a framework's profiler: the CPU is the device, and operators are its
 * kernels. Bars are self time of operators on the stage's thread, by class; the remaining time is between operators.
 * @param options.scaled false keeps operators as profiled, for callers that withhold what does not fit the clean time
 * @param options.clean false leaves all times as recorded under the profiler
 */
export async function operatorWaterfalls(
  session: Session,
  database: SessionDatabase,
  scope: TraceScope,
  { scaled = true, clean = true }: { scaled?: boolean; clean?: boolean } = {},
): Promise<TimelineWaterfalls> {
  const { groups, withoutWaterfall } = await stageGroups(scope);
  const stepsOfGroups = await groupSteps(session, scope, groups);
  const stages: StageWaterfall[] = [];
  for (const group of groups) {
    const stepsOfGroup = stepsOfGroups.steps.filter(({ kind }) => kind === group.kind);
    const need = await needOf(session, stepsOfGroup);
    const stage = await stageOf(database, scope, { group, need, scaled, clean });
    if (stage) stages.push({ ...stage, sequences: sequencesOfGroup(group, stepsOfGroups) });
  }
  return { stages, withoutWaterfall };
}

type Need = { necessary: NecessaryTime | MissingFigure; roofs: string[] };

async function needOf(session: Session, steps: readonly SizedStep[]): Promise<Need> {
  const missingNeed = (why: MissingFigure): Need => ({ necessary: why, roofs: [] });
  const { workload, hardware } = session.manifest;
  if (!workload?.model) {
    return missingNeed(missing('no_model', 'the session does not record its model (add it with --model)'));
  }
  const [first] = steps;
  if (!first) return missingNeed(missing('no_stage', 'the work of the stage is not known'));
  const model = workloadModel(workload);
  if ('reason' in model) return missingNeed(model);
  const cpu = await readStoredRoofline(session);
  const roofs = roofsOf({ workload: { ...workload, device: 'cpu' }, hardware }, { cpu, gpu: null });
  if ('reason' in roofs) return missingNeed(roofs);
  const shape = shapeOf(meanStep(first, steps));
  if ('reason' in shape) return missingNeed(shape);
  const peaks: Peaks = peaksAt(roofs, model, shape);
  const necessary = meanNecessary(steps, model, peaks);
  return { necessary, roofs: 'reason' in necessary ? [] : peakLines(model, shape, peaks) };
}

/** The step with the mean context of its batch size. A short context fits into caches better. */
function meanStep(first: SizedStep, steps: readonly SizedStep[]): SizedStep {
  const contexts = steps.flatMap(({ batch_size: batch, context_tokens_sum: context }) =>
    batch === first.batch_size && context !== null ? [context] : [],
  );
  if (contexts.length === 0) return first;
  return {
    ...first,
    context_tokens_sum: contexts.reduce((sum, context) => sum + context, 0) / contexts.length,
  };
}

/** SQL of the windows of a group: (stage_id, start_ns, end_ns). */
function windowsOf(group: StageGroup): string {
  switch (group.level) {
    case 'steps':
      return `SELECT stage_id, start_ns, end_ns FROM windows WHERE kind = '${group.kind}'`;
    case 'request':
      return 'SELECT request_id AS stage_id, min(start_ns) AS start_ns, max(end_ns) AS end_ns FROM request_parts GROUP BY request_id';
    case 'inner':
      return `SELECT stage_id, start_ns, end_ns FROM inner_windows WHERE grp = ${literal(group.key)}`;
  }
}

/** SQL of operators' self time on each window's thread: (stage_id, class, name, n, ns). */
const timesSql = (windows: string): string =>
  `WITH span AS (
     SELECT w.stage_id AS window_id, w.start_ns AS w_start, w.end_ns AS w_end, s.pid AS w_pid, s.tid AS w_tid
     FROM (${windows}) w LEFT JOIN phase_stages s USING (stage_id)),
   busiest AS (SELECT pid, tid FROM rank_ops GROUP BY ALL ORDER BY sum(coalesce(self_dur_ns, dur_ns)) DESC LIMIT 1)
   SELECT window_id AS stage_id, coalesce(class, 'other') AS class, name, count(*)::DOUBLE AS n, sum(coalesce(self_dur_ns, dur_ns))::DOUBLE AS ns
   FROM rank_ops o JOIN span ON o.start_ns >= w_start AND o.start_ns < w_end, busiest
   WHERE op_type IS DISTINCT FROM 'python_function' AND o.pid = coalesce(w_pid, busiest.pid) AND o.tid = coalesce(w_tid, busiest.tid)
   GROUP BY ALL`;

/**
 * SQL of time outside operators with a recorded cause, and of sampling between calls: (stage_id, id, n, ns). Only the
 * embedded engine records it.
 */
const hostTimesSql = (windows: string): string =>
  `WITH span AS (${windows})
   SELECT w.stage_id, g.cause AS id, count(*)::DOUBLE AS n, sum(g.dur_ns)::DOUBLE AS ns
   FROM span w JOIN rank_gaps g ON g.start_ns >= w.start_ns AND g.start_ns < w.end_ns WHERE g.cause LIKE 'host.runtime_%' GROUP BY ALL
   UNION ALL SELECT w.stage_id, 'host.sampling', count(*)::DOUBLE, sum(s.end_ns - s.start_ns)::DOUBLE
   FROM span w JOIN phase_stages s ON s.start_ns >= w.start_ns AND s.start_ns < w.end_ns
   WHERE s.kind = 'sampling' AND EXISTS (SELECT 1 FROM rank_gaps WHERE cause LIKE 'host.runtime_%') GROUP BY ALL`;

interface HostTime {
  stage_id: number;
  id: string;
  n: number;
  ns: number;
}

interface OpTime {
  stage_id: number;
  class: OpClass;
  name: string;
  n: number;
  ns: number;
}

async function stageOf(
  database: SessionDatabase,
  scope: TraceScope,
  options: { group: StageGroup; need: Need; scaled: boolean; clean: boolean },
): Promise<StageWaterfall | null> {
  const { group, need } = options;
  const windows = windowsOf(group);
  const spans = await database.query<Span>(
    `SELECT instance, label, (end_ns - start_ns)::DOUBLE AS ns FROM spans WHERE grp = $1 ORDER BY start_ns, instance`,
    [group.key],
  );
  if (spans.length === 0) return null;
  await scope.need('rank_gaps');
  const recorded = {
    operators: await database.query<OpTime>(timesSql(windows)),
    hosts: await database.query<HostTime>(hostTimesSql(windows)),
  };
  const n = spans.length;
  const sortedMs = spans.map(({ ns }) => ns / 1e6).toSorted((a, b) => a - b);
  const wallMs = spans.reduce((sum, { ns }) => sum + ns, 0) / n / 1e6;
  const clean = options.clean ? await cleanTimeOf(scope, group) : profiledOnly;
  const addedMs = clean.value === null ? 0 : wallMs - clean.value;
  const necessary = 'reason' in need.necessary ? null : need.necessary;
  const factor = options.scaled ? operatorFactor(recorded, n, wallMs, clean.value) : 1;
  const raw = partsOf(recorded, factor, n, wallMs, necessary);
  const parts = removeProfilerOverhead(raw, addedMs);
  const explainedMs = explainedBars(parts).ms;
  const bars = orderedIds(parts).map((id): WaterfallBar => {
    const ms = msOf(parts, id);
    const className = classOfBar(id);
    const barRows =
      className === null
        ? recorded.hosts.filter((row) => row.id === id)
        : recorded.operators.filter((row) => row.class === className);
    const recordedMs = sumNs(barRows) / n / 1e6;
    return {
      id,
      ms,
      share: explainedMs > 0 ? ms / explainedMs : 0,
      count: barRows.length === 0 ? null : barRows.reduce((sum, row) => sum + row.n, 0) / n,
      ...describeBar(id, { peaksMeasured: true, kind: group.kind, onCpu: true }),
      ...(id === 'host.between_operators' ? { better_capture: null } : {}),
      sql: barRows.length === 0 ? null : sqlOf(id, windows, { n, differenceMs: ms - recordedMs }),
      note: noteOf(id, ms, { raw, parts }),
      parts: className === null ? [] : operatorParts(barRows as OpTime[], { n, ms }),
    };
  });
  const total = bars.reduce((sum, { ms }) => sum + ms, 0);
  return {
    kind: group.kind,
    name: group.name,
    source: 'operators',
    execution_id: scope.source.attribution.execution_id,
    point: null,
    instances: n,
    measured_ms: meanOf(spans.map(({ ns }) => ns / 1e6)),
    median_ms: percentile(sortedMs, 0.5),
    p10_ms: percentile(sortedMs, 0.1),
    clock: 'host',
    clock_why: 'operators run on the CPU, on the thread that calls them',
    clean_ms: clean,
    ...needFields(need.necessary),
    roofs: need.roofs,
    bars,
    sum_error_share: wallMs > 0 ? Math.abs(total - wallMs) / wallMs : 0,
    rows: spans
      .slice(0, maxRows)
      .map((span) =>
        rowOf(span, recorded, { necessary, factor, addedShare: wallMs > 0 ? addedMs / wallMs : 0 }),
      ),
    ranks: [{ rank: scope.source.focus.rank, device: null, measured_ms: wallMs }],
  };
}

interface Span {
  instance: number;
  label: string;
  ns: number;
}

const msOf = (parts: readonly Part[], id: string): number => parts.find((part) => part.id === id)?.ms ?? 0;

/** The query behind a bar; `differenceMs` is what the bar has more than its recorded rows. */
function sqlOf(
  id: string,
  windows: string,
  { n, differenceMs }: { n: number; differenceMs: number },
): string {
  const className = classOfBar(id);
  return className === null
    ? `SELECT id AS what, sum(n) / ${n} AS count, sum(ns) / 1e6 / ${n} AS ms FROM (${hostTimesSql(windows)}) WHERE id = '${id}' GROUP BY id
UNION ALL SELECT '(removed: profiler overhead)', NULL, ${differenceMs} ORDER BY 3 DESC`
    : `SELECT name AS what, sum(n) / ${n} AS count, sum(ns) / 1e6 / ${n} AS ms FROM (${timesSql(windows)}) WHERE class = '${className}' GROUP BY name
UNION ALL SELECT '(roofline limit by model arithmetic, profiler overhead)', NULL, ${differenceMs} ORDER BY 3 DESC`;
}

/** One instance. Profiler overhead is distributed in proportion to measured time. */
function rowOf(
  { instance, label, ns }: Span,
  { operators, hosts }: Times,
  { necessary, factor, addedShare }: { necessary: NecessaryTime | null; factor: number; addedShare: number },
): StageWaterfall['rows'][number] {
  const isInInstance = ({ stage_id }: { stage_id: number }) => stage_id === instance;
  const times = { operators: operators.filter(isInInstance), hosts: hosts.filter(isInInstance) };
  const parts = removeProfilerOverhead(
    partsOf(times, factor, 1, ns / 1e6, necessary),
    (addedShare * ns) / 1e6,
  );
  return {
    stage_id: instance,
    label,
    measured_ms: ns / 1e6,
    bars: orderedIds(parts).map((id) => ({ id, ms: msOf(parts, id) })),
  };
}

/**
 * A profiler also makes operators longer, most on a busy CPU. If they take longer than the stage without the profiler and without its host
 * time, this factor scales them to it, so no bar exceeds its stage.
 */
function operatorFactor(times: Times, n: number, wallMs: number, cleanMs: number | null): number {
  const operatorMs = sumNs(times.operators) / n / 1e6;
  if (cleanMs === null || operatorMs === 0 || cleanMs >= wallMs) return 1;
  const host = [...hostTimes(times, n, wallMs)].map(([cause, ms]) => ({ id: `host.${cause}`, ms }));
  const hostMs = removeProfilerOverhead(host, wallMs - cleanMs)
    .filter(({ id }) => id !== 'profiler_overhead')
    .reduce((sum, { ms }) => sum + ms, 0);
  return Math.min(1, Math.max(0, cleanMs - hostMs) / operatorMs);
}

const sumNs = (rows: readonly { ns: number }[]): number => rows.reduce((sum, { ns }) => sum + ns, 0);

interface Times {
  operators: readonly OpTime[];
  hosts: readonly HostTime[];
}

/** Host time of a mean instance by cause, ms, with the time between operators. */
function hostTimes({ operators, hosts }: Times, n: number, wallMs: number): Map<string, number> {
  const host = new Map<string, number>();
  for (const { id, ns } of hosts) {
    const cause = hostPart(id);
    host.set(cause, (host.get(cause) ?? 0) + ns / n / 1e6);
  }
  const insideMs = (sumNs(operators) + sumNs(hosts)) / n / 1e6;
  return host.set(host.size > 0 ? 'loop' : 'between_operators', Math.max(0, wallMs - insideMs));
}

function partsOf(
  times: Times,
  factor: number,
  n: number,
  wallMs: number,
  necessary: NecessaryTime | null,
): Part[] {
  const classes = new Map<OpClass, number>();
  for (const { class: name, ns } of times.operators)
    classes.set(name, (classes.get(name) ?? 0) + (factor * ns) / n / 1e6);
  const host = hostTimes(times, n, wallMs);
  const idle = {
    synchronization: 0,
    launch_overhead: 0,
    launch_latency: 0,
    device_dependency: 0,
    unattributed: 0,
    host,
  };
  return splitOf({ wallMs, classes, communicationMs: 0, copies: new Map(), idle }, necessary);
}

const maxParts = 5;

/**
 * The operators of a bar. They sum to it: what a class needs at the roofline is not known per operator, so it is taken off each in
 * proportion to its time.
 */
function operatorParts(
  operatorTimes: readonly OpTime[],
  { n, ms }: { n: number; ms: number },
): WaterfallBar['parts'] {
  const totalNs = operatorTimes.reduce((sum, { ns }) => sum + ns, 0);
  if (!(ms > 0) || totalNs === 0) return [];
  const byName = new Map<string, WaterfallBar['parts'][number]>();
  for (const { name, ns, n: calls } of operatorTimes) {
    const known = byName.get(name) ?? { label: name, ms: 0, count: 0 };
    byName.set(name, { ...known, ms: known.ms + (ms * ns) / totalNs, count: known.count! + calls / n });
  }
  const sorted = [...byName.values()].toSorted((a, b) => b.ms - a.ms);
  const others = sorted.slice(maxParts);
  if (others.length < 2) return sorted;
  return [
    ...sorted.slice(0, maxParts),
    {
      label: plural(others.length, 'other operator'),
      ms: others.reduce((sum, part) => sum + part.ms, 0),
      count: others.reduce((sum, part) => sum + part.count!, 0),
    },
  ];
}

function noteOf(
  id: string,
  ms: number,
  { raw, parts }: { raw: readonly Part[]; parts: readonly Part[] },
): string | null {
  if (id === 'profiler_overhead') return profilerNote;
  const cleanNote = id === 'unattributed' ? cleanTimeNote(raw, parts) : null;
  if (cleanNote !== null) return cleanNote;
  if (id === 'roofline') return 'max(Σ FLOPs / peak, Σ bytes / bandwidth) of the whole stage';
  if (id === 'host.between_operators') return "measured time minus operator self time on the stage's thread";
  if (ms >= 0) return null;
  return id === 'unattributed'
    ? 'an operator that started in the stage ended after it'
    : 'faster than its roofline limit, or its work is in operators of other classes (fused)';
}

function meanOf(values: readonly number[]) {
  const n = values.length;
  const sd = n < 2 ? null : standardDeviation(values);
  return meanFigure(
    { mean: mean(values), sd, n },
    'ms',
    'ranges of the stage (start to start of the next, docs/concepts/stages-and-clocks.md)',
  );
}

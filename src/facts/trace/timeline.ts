import { gapParts } from '../../model/bars.js';
import type { OpClass } from '../../model/classes.js';
import type { PhaseKind, TraceTimeline } from '../../model/documents/trace.js';
import type { TraceScope } from './scope.js';

const maxDecodeSteps = 3;
/**
 * Maximum events of each kind. If one kind has more, the detail ends there for all kinds, and later events count in
 * `dropped`.
 */
const maxEvents = 4000;
const binCount = 400;
const maxPhases = 400;
/** Time shown from the first activity on if there are no phases. */
const unmarkedSpanNs = 20e6;
/** Steps after a longer pause are not shown event by event. */
const maxPauseNs = 5e8;

interface EventRow {
  what: TraceTimeline['lanes'][number]['what'];
  lane: string;
  name: string | null;
  class: OpClass | null;
  start_ns: number;
  dur_ns: number;
}

/** One prefill and the first decode steps after it, event by event, and the density of the whole capture by class. */
export async function readTimeline(scope: TraceScope): Promise<TraceTimeline> {
  await scope.need('windows');
  const { database, source } = scope;
  const span = await readDetailSpan(scope);
  const inside = `start_ns < ${span.end_ns} AND start_ns + dur_ns > ${span.start_ns}`;
  const markedStages = await database.query<TraceTimeline['stages'][number]>(
    `WITH shown_stages AS (SELECT s.*, s.phase AS kind FROM phase_stages s
                  WHERE start_ns < ${span.end_ns} AND coalesce(end_ns, start_ns) > ${span.start_ns})
     SELECT ${stageLabelSql} AS label, coalesce(kind, 'outside') AS kind,
            CASE WHEN parent_id IS NULL THEN 0 WHEN stage_id = phase_id AND kind <> 'sampling' THEN 0 ELSE 1 END AS depth,
            start_ns - ${span.start_ns} AS start_ns, coalesce(end_ns, start_ns) - start_ns AS dur_ns
     FROM shown_stages ORDER BY start_ns, dur_ns DESC LIMIT 400`,
  );
  const kinds = source.gpu_used ? (['kernels', 'copies', 'api', 'idle'] as const) : (['operators'] as const);
  const events = await database.query<EventRow & { hidden: number }>(
    kinds
      .map((what) => {
        const [rows, lane, name, opClass] = {
          kernels: [
            'rank_kernels',
            "'stream ' || coalesce(stream::VARCHAR, '?')",
            'coalesce(name, short_name)',
            'class',
          ],
          copies: ['rank_copies', "'copies, stream ' || coalesce(stream::VARCHAR, '?')", 'kind', 'NULL'],
          api: ['rank_api', "'API calls, thread ' || coalesce(tid::VARCHAR, '?')", 'name', 'NULL'],
          idle: [`(${gapPartRows(inside)})`, "'idle'", 'cause', 'NULL'],
          operators: [`(${nestedOperators(inside)})`, 'lane', 'name', 'class'],
        }[what];
        return `(SELECT '${what}' AS what, ${lane} AS lane, ${name} AS name, ${opClass} AS class, start_ns, dur_ns,
          greatest(0, count(*) OVER () - ${maxEvents}) AS hidden FROM ${rows} WHERE ${inside} ORDER BY start_ns LIMIT ${maxEvents})`;
      })
      .join(' UNION ALL '),
  );
  const end_ns = completeUntil(events, span.end_ns);
  const rows = events.filter((row) => row.start_ns < end_ns);
  const stages = markedStages
    .filter((stage) => span.start_ns + stage.start_ns < end_ns)
    .map((stage) => ({
      ...stage,
      dur_ns: Math.min(stage.dur_ns, end_ns - span.start_ns - stage.start_ns),
    }));
  const lanes = [...new Map(rows.map(({ what, lane }) => [lane, what]))].map(([label, what]) => ({
    label,
    what,
  }));
  const order = ['api', 'idle', 'kernels', 'copies', 'operators'];
  lanes.sort((a, b) => order.indexOf(a.what) - order.indexOf(b.what) || a.label.localeCompare(b.label, 'en'));
  const laneOf = new Map(lanes.map(({ label }, index) => [label, index]));
  const names = [...new Set(rows.map(({ name }) => name ?? ''))];
  const nameOf = new Map(names.map((name, index) => [name, index]));
  const hiddenCounts = new Map(events.map((row) => [row.what, row.hidden]));
  return {
    origin_ns: span.start_ns,
    dur_ns: end_ns - span.start_ns,
    dropped: [...hiddenCounts.values()].reduce((sum, count) => sum + count, events.length - rows.length),
    stages,
    lanes,
    names,
    events: rows.map((row) => ({
      lane: laneOf.get(row.lane)!,
      name: nameOf.get(row.name ?? '')!,
      class: row.class,
      start_ns: row.start_ns - span.start_ns,
      dur_ns: row.dur_ns,
    })),
    density: await readDensity(database, source),
  };
}

/** SQL of the kind as which figures count a stage: a step of a warm-up is warm-up. @param stage alias of a row of `stages` */
export const countedKindSql = (stage: string): string =>
  `CASE WHEN ${stage}.warmup THEN 'warmup' ELSE ${stage}.kind END`;

/** SQL of the label of a stage: ranges of inferscope (inferscope:decode:1:0) are labeled with their stage. */
export const stageLabelSql =
  "CASE WHEN raw_name IS NULL OR starts_with(raw_name, 'inferscope:') THEN concat_ws(' ', kind, step_index) ELSE raw_name END";

/** SQL of operators with their lane. Callees are in lower lanes. */
const nestedOperators = (inside: string): string =>
  `WITH RECURSIVE shown_ops AS (SELECT * FROM rank_ops WHERE ${inside} AND op_type IS DISTINCT FROM 'python_function'),
   nested AS (
     SELECT *, 0 AS depth FROM shown_ops WHERE NOT EXISTS (SELECT 1 FROM shown_ops parents WHERE parents.op_id = shown_ops.parent_op_id)
     UNION ALL SELECT shown_ops.*, depth + 1 FROM shown_ops JOIN nested ON nested.op_id = shown_ops.parent_op_id)
   SELECT *, concat('thread ', tid, CASE WHEN depth > 0 THEN ', depth ' || depth END) AS lane FROM nested`;

/** SQL of gap parts in time order, one row each. */
function gapPartRows(inside: string): string {
  const parts = gapParts.map((part, index) => {
    const before = gapParts.slice(0, index).map((earlier) => `coalesce(${earlier}_ns, 0)`);
    return `SELECT '${part}' AS cause, ${['start_ns', ...before].join(' + ')} AS start_ns, ${part}_ns AS dur_ns FROM gaps_inside WHERE ${part}_ns > 0`;
  });
  return `WITH gaps_inside AS (SELECT * FROM rank_gaps WHERE ${inside}) ${parts.join(' UNION ALL ')}`;
}

/** End of the first kind of event that was cut, because a lane that stops early would look idle. */
function completeUntil(rows: (EventRow & { hidden: number })[], end_ns: number): number {
  const last = new Map<string, number>();
  for (const { what, hidden, start_ns } of rows) if (hidden > 0) last.set(what, start_ns);
  return Math.min(end_ns, ...last.values());
}

async function readDetailSpan({
  database,
  source,
}: TraceScope): Promise<{ start_ns: number; end_ns: number }> {
  const windows = await database.query<{ kind: PhaseKind; start_ns: number; end_ns: number }>(
    `WITH first AS (SELECT min(start_ns) AS first_ns FROM windows WHERE kind = 'prefill'),
     steps AS (SELECT kind, start_ns, end_ns FROM windows, first
               WHERE kind IN ('decode', 'mixed') AND start_ns >= coalesce(first_ns, 0) ORDER BY start_ns LIMIT ${maxDecodeSteps})
     SELECT kind, start_ns, end_ns FROM (
       SELECT * FROM (SELECT kind, start_ns, end_ns FROM windows WHERE kind = 'prefill' ORDER BY start_ns LIMIT 1)
       UNION ALL FROM steps) ORDER BY start_ns`,
  );
  const [first] = windows;
  if (!first) {
    const end_ns = Math.min(source.end_ns, source.start_ns + unmarkedSpanNs);
    return { start_ns: source.start_ns, end_ns };
  }
  // A prefill far from the next step (another request's, or after a pause) is shown without it.
  const farIndex = windows.findIndex(
    (window, i) => i > 0 && window.start_ns - windows[i - 1]!.end_ns >= maxPauseNs,
  );
  const near = farIndex === -1 ? windows : windows.slice(0, farIndex);
  return { start_ns: first.start_ns, end_ns: Math.max(...near.map(({ end_ns }) => end_ns)) };
}

async function readDensity(
  database: TraceScope['database'],
  { start_ns, end_ns }: TraceScope['source'],
): Promise<TraceTimeline['density']> {
  const bin = Math.max(1, Math.ceil((end_ns - start_ns) / binCount));
  // An activity's exclusive time is spread evenly over its duration, and so over its bins.
  const work = (name: string, table: string) =>
    `SELECT ${name} AS class, start_ns - ${start_ns} AS begin_ns, start_ns - ${start_ns} + dur_ns AS end_ns,
       coalesce(exclusive_ns, dur_ns)::DOUBLE AS ns FROM ${table}`;
  const rows = await database.query<{ class: OpClass | 'copies'; bin: number; ns: number }>(
    `WITH work AS (
       SELECT *, begin_ns // ${bin} AS first, greatest(begin_ns, end_ns - 1) // ${bin} AS last
       FROM (${work("coalesce(class, 'other')", 'rank_kernels')} UNION ALL ${work("'copies'", 'rank_copies')}))
     SELECT class, bin, sum(ns)::DOUBLE AS ns FROM (
       SELECT class, first AS bin, ns FROM work WHERE first = last
       UNION ALL
       SELECT class, bin, ns * (least(end_ns, (bin + 1) * ${bin}) - greatest(begin_ns, bin * ${bin})) / (end_ns - begin_ns)
       FROM (SELECT *, unnest(range(greatest(first, 0), least(last, ${binCount - 1}) + 1)) AS bin FROM work WHERE first < last))
     WHERE bin BETWEEN 0 AND ${binCount - 1} GROUP BY class, bin`,
  );
  const classes = [...new Set(rows.map((row) => row.class))].sort();
  const phases = await database.query<TraceTimeline['density']['phases'][number]>(
    `WITH ordered AS (
       SELECT kind, start_ns, end_ns, row_number() OVER (ORDER BY start_ns, stage_id) - row_number() OVER (PARTITION BY kind ORDER BY start_ns, stage_id) AS island
       FROM windows WHERE kind <> 'sampling')
     SELECT kind, min(start_ns) AS start_ns, max(end_ns) - min(start_ns) AS dur_ns FROM ordered
     GROUP BY kind, island ORDER BY start_ns LIMIT ${maxPhases}`,
  );
  return {
    start_ns,
    bin_ns: bin,
    classes: classes.map((className) => {
      const share = Array.from({ length: binCount }, () => 0);
      for (const row of rows)
        if (row.class === className) share[row.bin] = Math.min(1, Math.round((1e4 * row.ns) / bin) / 1e4);
      return { class: className, share };
    }),
    phases,
  };
}

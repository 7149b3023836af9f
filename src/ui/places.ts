import type { analyzeAndExplain } from '../advice/explain/session-explanation.js';
import { slowestRuns } from '../facts/kernels/slowest-runs.js';
import type { ExplainResult, StageWaterfall } from '../model/documents/explain.js';
import type { ProfileResult } from '../model/documents/profile.js';
import type { PhaseKind } from '../model/documents/trace.js';
import { classOfBar, gapParts, isBarOf, isCopyBar, isHostBar } from '../model/bars.js';
import { idleCauseLabel } from '../vocabulary/idle-causes.js';
import { classLabel } from '../vocabulary/op-classes.js';
import { stageLabels } from '../vocabulary/stages.js';
import { barPlace, type Places, pointPlace } from '../views/findings.js';
import type { Session } from '../session/open.js';
import type { SessionDatabase } from '../session/query.js';

/** A time range of an execution, ns since the session's start, with the event to mark in it. */
interface Place {
  execution: string;
  start: number;
  end: number;
  /** The gap or kernel to mark; null to show the whole stage. */
  mark: { start: number; end: number } | null;
  /** Link text. */
  text: string;
}

type LinkTo = (place: Place) => string;

/**
 * The best place in the timeline for each finding, bar and roofline point: the longest of its gaps, kernels, copies or operators in a stage
 * of that kind; without any, the slowest such stage.
 * @param linkTo link to a place
 */
export async function placesOf(
  session: Session,
  database: SessionDatabase,
  { analyzed, explain }: Pick<Awaited<ReturnType<typeof analyzeAndExplain>>, 'analyzed' | 'explain'>,
  linkTo: LinkTo,
): Promise<Places> {
  const focus = analyzed.kind === 'captures' ? analyzed.document.trace?.data.source.focus : undefined;
  return new Map([
    ...(explain ? await explained(database, explain.data, focus, linkTo) : []),
    ...(analyzed.kind === 'profile' ? await stagePoints(database, analyzed.document.data, linkTo) : []),
    ...(analyzed.kind === 'kernels' ? await casePoints(session, database, linkTo) : []),
  ]);
}

/** The rank and device that the explanation is of; places on others would contradict it. */
type Focus = { rank: number | null; device: number | null } | undefined;

async function explained(
  database: SessionDatabase,
  { findings, stages }: ExplainResult,
  focus: Focus,
  linkTo: LinkTo,
): Promise<Places> {
  const places = new Map<string, { link: string; text: string }>();
  const add = (key: string, place: Place, text: string) => places.set(key, { link: linkTo(place), text });
  for (const stage of stages) {
    const placeByBar = new Map<string, Place>();
    const slowest = await slowestOf(database, stage);
    for (const { id, label } of stage.bars) {
      const place = await longest(database, id, stage, focus);
      if (place) placeByBar.set(id, place);
      const shown = place ?? slowest;
      if (shown) add(barPlace(stage.kind, id), shown, label);
    }
    const stageFindings = findings.filter(
      (finding) => finding.stage === stage.kind && !places.has(finding.id),
    );
    // A finding opens at its bar with the most time.
    const placed = stage.bars.filter(({ id }) => placeByBar.has(id)).toSorted((a, b) => b.ms - a.ms);
    for (const { id, bars } of stageFindings) {
      const bar = placed.find((candidate) => bars.includes(candidate.id));
      const place = bar ? placeByBar.get(bar.id) : slowest;
      if (place) add(id, place, place.text);
    }
  }
  return places;
}

interface Row {
  start_ns: number;
  end_ns: number;
  /** Null for an event of the whole capture. */
  stage_start_ns: number | null;
  stage_end_ns: number | null;
}

/** Time range to show around an event: wide enough that the event spans several pixels, and inside its stage. */
function around({ start_ns: start, end_ns: end, stage_start_ns: from, stage_end_ns: to }: Row) {
  const room = 10 * (end - start);
  return {
    start: Math.min(start, Math.max(from ?? -Infinity, start - room)),
    end: Math.max(end, Math.min(to ?? Infinity, end + room)),
  };
}

/** "a decode step", or "the whole capture" if it has no stages. */
const inStage = ({ kind }: StageWaterfall): string =>
  kind === 'outside' ? 'the whole capture' : `a ${stageLabels[kind] ?? kind}`;

/** The longest gap with a bar's cause, kernel of its class or copy of its direction; null for other bars. */
async function longest(
  database: SessionDatabase,
  bar: string,
  stage: StageWaterfall,
  focus: Focus,
): Promise<Place | null> {
  const cause = gapParts.find((part) => part === bar || (part === 'host' && isHostBar(bar)));
  const kind = isBarOf(bar, 'exposed_comm') ? 'communication' : classOfBar(bar);
  const direction = isCopyBar(bar, 'htod') ? 'HtoD' : isCopyBar(bar, 'dtoh') ? 'DtoH' : null;
  const isCopy = isBarOf(bar, 'exposed_copy');
  if (!cause && kind === null && !isCopy) return null;
  const [table, where, by] = cause
    ? ['gaps', `e.${cause}_ns > 0`, `e.${cause}_ns`]
    : isCopy
      ? ['copies', direction === null ? 'true' : `e.kind = '${direction}'`, 'e.dur_ns']
      : ['kernels', `e.class = '${kind!.replaceAll("'", "''")}'`, 'e.dur_ns'];
  const unmarked = stage.kind === 'outside';
  const stages = unmarked
    ? { of: 'NULL AS stage_start_ns, NULL AS stage_end_ns', join: '', where: 'true' }
    : {
        of: 'p.start_ns AS stage_start_ns, p.end_ns AS stage_end_ns',
        join: `JOIN stages s USING (execution_id, capture_id, stage_id)
     JOIN stages p ON p.execution_id = s.execution_id AND p.capture_id = s.capture_id AND p.stage_id = s.phase_id`,
        where: 'p.kind = $4 AND NOT coalesce(p.warmup, false)',
      };
  const [row] = await database.query<Row>(
    `SELECT e.start_ns, e.start_ns + e.dur_ns AS end_ns, ${stages.of} FROM ${table} e ${stages.join}
     WHERE e.execution_id = $1 AND ($2::INTEGER IS NULL OR e.rank = $2) AND ($3::INTEGER IS NULL OR e.device = $3)
       AND ${stages.where} AND ${where} ORDER BY ${by} DESC LIMIT 1`,
    [stage.execution_id, focus?.rank ?? null, focus?.device ?? null, ...(unmarked ? [] : [stage.kind])],
  );
  if (!row) return kind === null ? null : longestOperator(database, stage.kind, kind);
  return {
    execution: stage.execution_id,
    ...around(row),
    mark: { start: row.start_ns, end: row.end_ns },
    text: cause
      ? `longest gap in ${inStage(stage)}: ${idleCauseLabel(cause)}`
      : isCopy
        ? `longest ${direction === null ? '' : `${direction} `}copy in ${inStage(stage)}`
        : `longest ${classLabel(kind!)} kernel in ${inStage(stage)}`,
  };
}

async function slowestOf(database: SessionDatabase, stage: StageWaterfall): Promise<Place | null> {
  const [row] = await database.query<{ start_ns: number; end_ns: number }>(
    `SELECT start_ns, end_ns FROM stages WHERE execution_id = $1 AND kind = $2 AND stage_id = phase_id
       AND NOT coalesce(warmup, false) ORDER BY end_ns - start_ns DESC LIMIT 1`,
    [stage.execution_id, stage.kind],
  );
  return row
    ? {
        execution: stage.execution_id,
        start: row.start_ns,
        end: row.end_ns,
        mark: null,
        text: `slowest ${stageLabels[stage.kind] ?? stage.kind}`,
      }
    : null;
}

/**
 * The longest operator in any execution: the embedded engine times its stages without operators and profiles operators in another
 * execution.
 */
async function longestOperator(
  database: SessionDatabase,
  stage: string,
  kind: string,
): Promise<Place | null> {
  const [row] = await database.query<Row & { execution_id: string }>(
    `SELECT o.execution_id, o.start_ns, o.start_ns + o.dur_ns AS end_ns, p.start_ns AS stage_start_ns, p.end_ns AS stage_end_ns
     FROM ops o JOIN stages s ON s.execution_id = o.execution_id AND s.stage_id = o.stage_id
       AND (s.capture_id = o.capture_id OR o.capture_id NOT IN (SELECT capture_id FROM stages))
     JOIN stages p ON p.execution_id = s.execution_id AND p.capture_id = s.capture_id AND p.stage_id = s.phase_id
     WHERE p.kind = $1 AND NOT coalesce(p.warmup, false) AND o.class = $2
     ORDER BY coalesce(o.self_dur_ns, o.dur_ns) DESC LIMIT 1`,
    [stage, kind],
  );
  return row
    ? {
        execution: row.execution_id,
        ...around(row),
        mark: { start: row.start_ns, end: row.end_ns },
        text: `longest ${classLabel(kind)} operator in a ${stageLabels[stage as PhaseKind] ?? stage}`,
      }
    : null;
}

/** Places of the points of a profile: a class at its longest operator, a stage at its slowest instance with operators. */
async function stagePoints(
  database: SessionDatabase,
  { stages }: ProfileResult,
  linkTo: LinkTo,
): Promise<Places> {
  const places = new Map<string, { link: string; text: string }>();
  for (const { kind, breakdown } of stages) {
    const [slowest] = await database.query<Row & { execution_id: string }>(
      `SELECT execution_id, start_ns, end_ns FROM stages
       WHERE kind = $1 AND stage_id = phase_id AND NOT coalesce(warmup, false)
         AND execution_id IN (SELECT execution_id FROM ops) ORDER BY end_ns - start_ns DESC LIMIT 1`,
      [kind],
    );
    if (slowest) places.set(pointPlace(kind), leads(slowest, `slowest ${stageLabels[kind] ?? kind}`, linkTo));
    for (const { class: name } of breakdown?.by_class ?? []) {
      const place = await longestOperator(database, kind, name);
      if (place) places.set(pointPlace(kind, name), { link: linkTo(place), text: place.text });
    }
  }
  return places;
}

/** Places of measured kernels: the slowest run in the trace of each case (--trace). */
async function casePoints(session: Session, database: SessionDatabase, linkTo: LinkTo): Promise<Places> {
  const rows = await slowestRuns(session, database);
  return new Map(rows.map((row) => [pointPlace(row.case), leads(row, `slowest run of ${row.case}`, linkTo)]));
}

const leads = (
  {
    execution_id: execution,
    start_ns: start,
    end_ns: end,
  }: Pick<Row, 'start_ns' | 'end_ns'> & { execution_id: string },
  text: string,
  linkTo: LinkTo,
): { link: string; text: string } => ({
  link: linkTo({ execution, start, end, mark: null, text }),
  text,
});

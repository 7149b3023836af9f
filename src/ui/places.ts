import type { analyzeAndExplain } from '../advice/explain/session-explanation.js';
import { readSlowestRuns } from '../facts/kernels/slowest-runs.js';
import type { ExplainResult, StageWaterfall } from '../model/documents/explain.js';
import type { ProfileResult } from '../model/documents/profile.js';
import type { PhaseKind } from '../model/documents/trace.js';
import { classOfBar, gapParts, isBarOf, isCopyBar, isHostBar } from '../model/bars.js';
import { copyDirection } from '../vocabulary/bars.js';
import { idleCauseLabel } from '../vocabulary/idle-causes.js';
import { classLabel } from '../vocabulary/op-classes.js';
import { instanceWord, stageLabels } from '../vocabulary/stages.js';
import { barPlace, type Places, pointPlace } from '../views/findings.js';
import {
  longestEvents,
  longestOperators,
  slowestStages,
  type Focus,
  type Instance,
  type Longest,
  type LongestOperator,
  type StageEvent,
} from './longest-events.js';
import type { Session } from '../session/open.js';
import type { SessionDatabase } from '../session/query.js';

/** A time range of an execution, ns since the session's start, with the event to mark in it. */
interface Place {
  execution: string;
  start: number;
  end: number;
  /** The gap or kernel to mark; null to show the whole stage. */
  mark: { start: number; end: number } | null;
  /** Class of all events of the same kind, as the timeline highlights it: gaps:launch_latency; null without a mark. */
  highlight: string | null;
  /** Link text. */
  text: string;
}

type LinkTo = (place: Place) => string;

/** The part of a timeline's URL that shows a place. */
export function placeQuery({ start, end, mark, highlight }: Place): URLSearchParams {
  const query = new URLSearchParams({ start: String(start), end: String(end) });
  if (mark) query.set('mark', `${mark.start},${mark.end}`);
  if (highlight) query.set('class', highlight);
  return query;
}

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
    ...(explain ? await explainedPlaces(database, explain.data, focus, linkTo) : []),
    ...(analyzed.kind === 'profile' ? await stagePoints(database, analyzed.document.data, linkTo) : []),
    ...(analyzed.kind === 'kernels' ? await casePoints(session, database, linkTo) : []),
  ]);
}

async function explainedPlaces(
  database: SessionDatabase,
  { findings, stages }: ExplainResult,
  focus: Focus,
  linkTo: LinkTo,
): Promise<Places> {
  const places = new Map<string, { link: string; text: string }>();
  const add = (key: string, place: Place, text: string) => places.set(key, { link: linkTo(place), text });
  const longest = await longestEvents(database, focus, stages);
  let operators: Promise<LongestOperator> | undefined;
  const slowestStage = await slowestStages(database);
  for (const stage of stages) {
    const placeByBar = new Map<string, Place>();
    const instance = slowestStage(stage.kind, stage.execution_id);
    const slowest = instance ? wholeStage(stage.kind, instance) : null;
    for (const { id, label } of stage.bars) {
      const place = await placeOf(id, stage, longest, () => (operators ??= longestOperators(database)));
      if (place) placeByBar.set(id, place);
      const placeOrStage = place ?? slowest;
      if (placeOrStage) add(barPlace(stage.kind, id), placeOrStage, label);
    }
    const stageFindings = findings.filter(
      (finding) => finding.stage === stage.kind && !places.has(finding.id),
    );
    // A finding opens at its bar with the most time.
    const barsWithPlace = stage.bars.filter(({ id }) => placeByBar.has(id)).toSorted((a, b) => b.ms - a.ms);
    for (const { id, bars } of stageFindings) {
      const bar = barsWithPlace.find((candidate) => bars.includes(candidate.id));
      const place = bar ? placeByBar.get(bar.id) : slowest;
      if (place) add(id, place, place.text);
    }
  }
  return places;
}

/** Time range to show around an event: wide enough that the event spans several pixels, and inside its stage. */
function around({ start_ns: start, end_ns: end, stage_start_ns: from, stage_end_ns: to }: StageEvent) {
  const room = 10 * (end - start);
  return {
    start: Math.min(start, Math.max(from ?? -Infinity, start - room)),
    end: Math.max(end, Math.min(to ?? Infinity, end + room)),
  };
}

/** The longest gap with a bar's cause, kernel or operator of its class, or copy of its direction; null for other bars. */
async function placeOf(
  bar: string,
  stage: StageWaterfall,
  longest: Longest,
  findOperators: () => Promise<LongestOperator>,
): Promise<Place | null> {
  const cause = gapParts.find((part) => part === bar || (part === 'host' && isHostBar(bar)));
  if (cause)
    return marked(
      longest('gaps', cause, stage),
      `gaps:${cause}`,
      `longest gap in ${instanceWord(stage.kind)}: ${idleCauseLabel(cause)}`,
    );
  const opClass = isBarOf(bar, 'exposed_comm') ? 'communication' : classOfBar(bar);
  if (isBarOf(bar, 'exposed_copy')) {
    const direction = isCopyBar(bar, 'htod') ? 'HtoD' : isCopyBar(bar, 'dtoh') ? 'DtoH' : null;
    const words = direction === null ? '' : `${copyDirection(direction)} `;
    return marked(
      longest('copies', direction, stage),
      'kernels:copy',
      `longest ${words}copy in ${instanceWord(stage.kind)}`,
    );
  }
  if (opClass === null) return null;
  return (
    marked(
      longest('kernels', opClass, stage),
      `kernels:${opClass}`,
      `longest ${classLabel(opClass)} kernel in ${instanceWord(stage.kind)}`,
    ) ?? operatorPlace(stage.kind, opClass, await findOperators())
  );
}

const operatorPlace = (kind: string, opClass: string, longestOperator: LongestOperator): Place | null =>
  marked(
    longestOperator(kind, opClass),
    `kernels:${opClass}`,
    `longest ${classLabel(opClass)} operator in ${instanceWord(kind)}`,
  );

const marked = (event: StageEvent | undefined, highlight: string, text: string): Place | null =>
  event
    ? {
        execution: event.execution_id,
        ...around(event),
        mark: { start: event.start_ns, end: event.end_ns },
        highlight,
        text,
      }
    : null;

const wholeStage = (
  kind: string,
  { execution_id: execution, start_ns: start, end_ns: end }: Instance,
): Place => ({
  execution,
  start,
  end,
  mark: null,
  highlight: null,
  text: `slowest ${stageLabels[kind as PhaseKind] ?? kind}`,
});

/** Places of the points of a profile: a class at its longest operator, a stage at its slowest instance with operators. */
async function stagePoints(
  database: SessionDatabase,
  { stages }: ProfileResult,
  linkTo: LinkTo,
): Promise<Places> {
  const places = new Map<string, { link: string; text: string }>();
  const longestOperator = await longestOperators(database);
  const slowestStage = await slowestStages(database);
  for (const { kind, breakdown } of stages) {
    const slowest = slowestStage(kind, null);
    if (slowest) {
      const place = wholeStage(kind, slowest);
      places.set(pointPlace(kind), { link: linkTo(place), text: place.text });
    }
    for (const { class: name } of breakdown?.by_class ?? []) {
      const place = operatorPlace(kind, name, longestOperator);
      if (place) places.set(pointPlace(kind, name), { link: linkTo(place), text: place.text });
    }
  }
  return places;
}

/** Places of measured kernels: the slowest run in the trace of each case (--trace). */
async function casePoints(session: Session, database: SessionDatabase, linkTo: LinkTo): Promise<Places> {
  const rows = await readSlowestRuns(session, database);
  return new Map(
    rows.map((row) => [pointPlace(row.case), linkOfInstance(row, `slowest run of ${row.case}`, linkTo)]),
  );
}

const linkOfInstance = (
  { execution_id: execution, start_ns: start, end_ns: end }: Instance,
  text: string,
  linkTo: LinkTo,
): { link: string; text: string } => ({
  link: linkTo({ execution, start, end, mark: null, highlight: null, text }),
  text,
});

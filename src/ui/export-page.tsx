import { type CallRoof, readCallRoofs } from '../facts/gemms/gemm-calls.js';
import { readFile } from 'node:fs/promises';
import { raw } from 'hono/html';
import { analyzeAndExplain } from '../advice/explain/session-explanation.js';
import { documentsOf } from '../facts/session-document.js';
import { InferscopeError } from '../model/errors.js';
import { childEntry } from '../model/installation.js';
import { pageOfView } from '../render/html/view.js';
import type { Session } from '../session/open.js';
import type { SessionDatabase } from '../session/query.js';
import type { Places } from '../views/findings.js';
import { viewOf } from '../views/registry.js';
import { formatBytes, formatNs, plural } from '../vocabulary/format.js';
import { eventLinks } from './event-links.js';
import { exportedRecords, exportedWhatIf, packBase64 } from './exported-parts.js';
import { placeQuery, placesOf } from './places.js';
import { uiStyle } from './style.js';
import { TimelineParts } from './timeline-parts.js';
import { countersOf } from './timeline/counters.js';
import type { Row } from './timeline/details.js';
import { encodeTimeline, type EmbeddedTimeline } from './timeline/embedded.js';
import { type Lane, partOf } from './timeline/lane.js';
import { executionsOf } from './timeline/open-timelines.js';
import { lanesIn } from './timeline/places.js';
import { showTimeline } from './timeline/show.js';
import type { EventLinks, Span, Steps } from './timeline/shown.js';
import { stepsOf } from './timeline/steps.js';
import { rowsWithNames } from './timeline/stored-rows.js';
import { trackTables, type Timeline } from './timeline/timeline.js';
import { readTimeline, startTimeline } from './timeline/tracks.js';

/** Maximum size of a file, bytes. */
const maxBytes = 5_000_000;

/** Contents of a file, from everything to the minimum: the first plan that fits is used. */
const plans = [
  { events: 'all', rows: 'all', windows: ['view', 'steps', 'places'], bins: 0 },
  { events: 'all', rows: 'windows', windows: ['view', 'steps', 'places'], bins: 0 },
  { events: 'windows', rows: 'windows', windows: ['view', 'steps', 'places'], bins: 2 ** 14 },
  { events: 'windows', rows: 'windows', windows: ['view', 'steps', 'places'], bins: 2 ** 12 },
  { events: 'windows', rows: 'windows', windows: ['view', 'steps'], bins: 2 ** 12 },
  { events: 'windows', rows: 'windows', windows: ['steps'], bins: 2 ** 12 },
  { events: 'windows', rows: 'none', windows: ['steps'], bins: 2 ** 10 },
] as const;
type Plan = (typeof plans)[number];

/** Times of which a file has single events: the view that was saved, steps, and places of findings. */
type WindowKind = 'view' | 'steps' | 'places';

/** What a file shows first; by default its start. */
export interface SavedView {
  /** Default: the one with the most GPU work. */
  execution?: string;
  /** State of the timeline page, as its URL has it; null for another page. */
  timeline?: URLSearchParams | null;
  /** What-if changes of the overview. */
  whatIf?: readonly string[];
}

/** Sessions with more events are never exported whole. */
const maxEvents = 600_000;
const maxRows = 200_000;
/** A lane with fewer events is always exported whole. */
const fewEvents = 4096;

/**
 * One HTML page that opens offline, with overview, requests, memory over time, what-if and timeline of a session.
 * @param options.limitBytes maximum size of a page with a timeline
 * @param options.view what it shows first
 * @returns the page, and a text about the parts of the timeline that it lacks; null if it has all
 * @throws E_USAGE for a session without an overview, or if the page exceeds `limitBytes` even with the shortest timeline
 */
export async function exportedPage(
  session: Session,
  { limitBytes = maxBytes, view: saved = {} }: { limitBytes?: number; view?: SavedView } = {},
): Promise<{ html: string; note: string | null }> {
  const { analyzed, explain } = await analyzeAndExplain(session);
  if (documentsOf(analyzed).length === 0)
    throw new InferscopeError('E_USAGE', {
      what: `session ${session.id} has nothing to export as a page`,
      why: 'It has no operators, kernels, counters, GEMMs, benchmark, load test, results or samples.',
      fix: `To see its contents: inferscope session show ${session.id}`,
    });
  const script = (entry: string) => readFile(childEntry(entry), 'utf8');
  const scripts = {
    clientScript: await script('report-client'),
    readingScript: await script('report-reading'),
    explain,
  };
  const database = await session.connect();
  try {
    const execution = saved.execution ?? (await executionsOf(database))[0];
    const windows: Span[] = [];
    const places =
      execution === undefined
        ? null
        : await placesIn(session, database, { analyzed, explain }, execution, windows);
    const sessionView = await viewOf(analyzed, places ?? undefined);
    const view = {
      ...sessionView,
      sections: [...sessionView.sections, ...(await exportedRecords(database, session, analyzed))],
    };
    if (execution === undefined) return { html: pageOfView(view, scripts), note: null };
    const whatIf =
      explain === null ? null : await exportedWhatIf(session, view, explain, places, saved.whatIf ?? []);
    const drawer = await script('ui-exported');
    const page = (data: string, state = ''): string =>
      pageOfView(
        { ...view, sections: view.sections.filter(({ id }) => id !== 'timeline') },
        {
          ...scripts,
          ...(places ? { places } : {}),
          ...(whatIf ? { navigation: whatIf } : {}),
          drawn: {
            id: 'whole-timeline',
            title: 'Timeline',
            script: drawer,
            content: (
              <>
                <style>{raw(uiStyle)}</style>
                <TimelineParts executions={[execution]} execution={execution} />
                <script type="application/octet-stream" data-state={state}>
                  {raw(data)}
                </script>
              </>
            ),
          },
        },
      );
    const timeline = await startTimeline(database, execution);
    await readTimeline(database, timeline);
    const state = saved.timeline ?? null;
    const room = limitBytes - Buffer.byteLength(page('', state?.toString()));
    const fitted = await fitTimeline(database, session, timeline, {
      places: windows,
      room,
      state,
      links: explain === null ? {} : eventLinks(explain.data, ''),
    });
    if (fitted === null)
      throw new InferscopeError('E_USAGE', {
        what: `the page of session ${session.id} is larger than ${formatBytes(limitBytes)}`,
        why: `Without its timeline it takes ${formatBytes(limitBytes - room)}.`,
        fix: `Write the report instead: inferscope report ${session.id}`,
      });
    return { html: page(fitted.data, fitted.state), note: fitted.note === '' ? null : fitted.note };
  } finally {
    await database.close();
  }
}

/** Links to places in one execution; adds their times to `windows`, so that the file has their events. */
async function placesIn(
  session: Session,
  database: SessionDatabase,
  found: Awaited<ReturnType<typeof analyzeAndExplain>>,
  execution: string,
  windows: Span[],
): Promise<Places> {
  const places = await placesOf(session, database, found, (place) => {
    if (place.execution !== execution) return '';
    windows.push({ start: place.start, end: place.end });
    return `#timeline?${placeQuery(place)}`;
  });
  return new Map([...places].filter(([, { link }]) => link !== ''));
}

async function fitTimeline(
  database: SessionDatabase,
  session: Session,
  timeline: Timeline,
  {
    places,
    room,
    state,
    links,
  }: { places: readonly Span[]; room: number; state: URLSearchParams | null; links: EventLinks },
): Promise<{ data: string; state: string; note: string } | null> {
  const steps = await stepsOf(database, timeline);
  const counters = await countersOf(database, timeline);
  const windowsOf: Record<WindowKind, readonly Span[]> = {
    view: viewWindow(state, timeline),
    steps: await stepWindows(database, timeline, steps),
    places,
  };
  const roofs = await readCallRoofs(session, database);
  const lanes = lanesIn(timeline).map(({ lane }) => lane);
  const events = lanes.reduce((sum, { length }) => sum + length, 0);
  const span = timeline.to - timeline.from;
  for (const plan of plans) {
    if (plan.events === 'all' && events > maxEvents) continue;
    if (plan.rows === 'all' && events > maxRows) continue;
    const windows = widenAndMerge(
      plan.windows.flatMap((kind) => windowsOf[kind]),
      timeline,
    );
    if (plan.events === 'windows' && eventsIn(lanes, windows) > maxEvents) continue;
    const level = Math.max(0, Math.ceil(Math.log2(span / Math.max(1, plan.bins))));
    const note = noteOf(plan, { windows, level, id: session.id, hasView: windowsOf.view.length > 0 });
    const exported = lanes.map((lane) =>
      plan.events === 'all' || lane.length <= fewEvents ? lane : partOf(lane, windows, timeline.from, level),
    );
    const data = encodeTimeline({
      shown: showTimeline(timeline, 0),
      names: timeline.names,
      counters,
      steps,
      links,
      note,
      lanes: exported,
      rows:
        plan.rows === 'none'
          ? {}
          : await rowsOf(database, timeline, plan.rows === 'all' ? null : windows, roofs),
    });
    const text = packBase64(data);
    if (text.length <= room) return { data: text, state: stateOf(state, lanes, exported), note };
  }
  return null;
}

/** The time that the saved page showed. */
function viewWindow(state: URLSearchParams | null, { from, to }: Timeline): Span[] {
  const [start, end] = [Number(state?.get('start')), Number(state?.get('end'))];
  return end > start && start < to && end > from ? [{ start, end }] : [];
}

const eventsIn = (lanes: readonly Lane[], windows: readonly Span[]): number =>
  lanes
    .flatMap((lane) =>
      windows.map(({ start, end }) => lane.firstStartingFrom(end) - lane.firstEndingAfter(start)),
    )
    .reduce((sum, events) => sum + Math.max(0, events), 0);

/** The state of the saved page, with the index of its event in the exported lane; without it if the file does not have the event. */
function stateOf(state: URLSearchParams | null, lanes: readonly Lane[], exported: readonly Lane[]): string {
  if (state === null) return '';
  const query = new URLSearchParams(state);
  const [number = -1, index = -1] = (query.get('event') ?? '').split(',').map(Number);
  const [lane, part] = [lanes[number], exported[number]];
  query.delete('event');
  if (lane && part && index >= 0 && index < lane.length) {
    const found = part.firstEndingAfter(lane.end[index]! - 1);
    if (part.start[found] === lane.start[index] && part.end[found] === lane.end[index])
      query.set('event', `${number},${found}`);
  }
  return query.toString();
}

function noteOf(
  { events, rows, windows: kinds }: Plan,
  { windows, level, id, hasView }: { windows: readonly Span[]; level: number; id: string; hasView: boolean },
): string {
  if (events === 'all' && rows === 'all') return '';
  const shown = windows.reduce((sum, { start, end }) => sum + end - start, 0);
  const words = {
    view: hasView ? 'the saved view' : null,
    steps: 'the median and the slowest step of each kind',
    places: 'the places of findings',
  };
  const which = `${kinds.flatMap((kind) => words[kind] ?? []).join(', ')} (${plural(windows.length, 'period')}, ${formatNs(shown)})`;
  const what =
    events === 'all'
      ? `Grid, registers, shapes and launches are here for ${which}.`
      : `Single events are here for ${which}; elsewhere time is summed by class in bins of ${formatNs(2 ** level)}${rows === 'none' ? ', and no event has its details' : ''}.`;
  return `${what} For all of it: inferscope ui ${id}`;
}

/** Times of the median and slowest step of each kind, including their GPU work. */
async function stepWindows(
  database: SessionDatabase,
  { execution, from }: Timeline,
  steps: readonly Steps[],
): Promise<Span[]> {
  const windows: Span[] = [];
  for (const { start, end } of steps.flatMap(({ median, slowest }) => [median, slowest])) {
    const [found] = await database.query<{ last: number | null }>(
      'SELECT max(device_end_ns) AS last FROM stages WHERE execution_id = $1 AND start_ns >= $2 AND end_ns <= $3',
      [execution, from + start, from + end],
    );
    windows.push({ start: from + start, end: Math.max(from + end, found?.last ?? 0) });
  }
  return windows;
}

/** The windows with a little more than the margin that a page shows around a step, sorted and merged. */
function widenAndMerge(windows: readonly Span[], { from, to }: Timeline): Span[] {
  const merged: Span[] = [];
  const wide = windows.map(({ start, end }) => {
    // A page moves a range that reaches over an end of the capture into it.
    const width = Math.min(to - from, 1.4 * (end - start));
    const first = Math.floor(Math.min(Math.max(from, (start + end - width) / 2), to - width));
    return { start: first, end: Math.ceil(first + width) };
  });
  for (const span of wide.sort((a, b) => a.start - b.start)) {
    const last = merged.at(-1);
    if (last && span.start <= last.end) last.end = Math.max(last.end, span.end);
    else merged.push({ ...span });
  }
  return merged;
}

/** Table rows of the events in the given times; null: of all events. */
async function rowsOf(
  database: SessionDatabase,
  { execution }: Timeline,
  windows: readonly Span[] | null,
  roofs: readonly CallRoof[],
): Promise<EmbeddedTimeline['rows']> {
  const rows: Record<string, Row[]> = {};
  for (const table of trackTables) {
    const end = table === 'stages' ? 'e.end_ns' : 'e.start_ns + e.dur_ns';
    const inside = windows?.map(({ start, end: until }) => `e.start_ns < ${until} AND ${end} > ${start}`);
    rows[table] = await database.query<Row>(
      `SELECT * EXCLUDE (execution_id, host) FROM (${rowsWithNames(table, roofs)} WHERE e.execution_id = $1 ${inside ? `AND (${inside.join(' OR ') || 'false'})` : ''}) ORDER BY start_ns`,
      [execution],
    );
  }
  return rows;
}

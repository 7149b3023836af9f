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
import { exportedRecords, exportedWhatIf, packBase64 } from './exported-parts.js';
import { placeQuery, placesOf } from './places.js';
import { uiStyle } from './style.js';
import { TimelineParts } from './timeline-parts.js';
import { countersOf } from './timeline/counters.js';
import type { Row } from './timeline/details.js';
import { encodeTimeline, type EmbeddedTimeline } from './timeline/embedded.js';
import { partOf } from './timeline/lane.js';
import { executionsOf } from './timeline/open-timelines.js';
import { lanesIn } from './timeline/places.js';
import { showTimeline } from './timeline/show.js';
import type { Span, Steps } from './timeline/shown.js';
import { stepsOf } from './timeline/steps.js';
import { rowsWithNames } from './timeline/stored-rows.js';
import { trackTables, type Timeline } from './timeline/timeline.js';
import { readTimeline, startTimeline } from './timeline/tracks.js';

/** Maximum size of a file, bytes. */
const maxBytes = 5_000_000;

/** Contents of a file, from everything to the minimum: the first plan that fits is used. */
const plans = [
  { events: 'all', rows: 'all', places: true, bins: 0 },
  { events: 'all', rows: 'windows', places: true, bins: 0 },
  { events: 'windows', rows: 'windows', places: true, bins: 2 ** 14 },
  { events: 'windows', rows: 'windows', places: true, bins: 2 ** 12 },
  { events: 'windows', rows: 'windows', places: false, bins: 2 ** 12 },
  { events: 'windows', rows: 'none', places: false, bins: 2 ** 10 },
] as const;
type Plan = (typeof plans)[number];

/** Sessions with more events are never exported whole. */
const maxEvents = 600_000;
const maxRows = 200_000;
/** A lane with fewer events is always exported whole. */
const fewEvents = 4096;

/**
 * One HTML page that opens offline, with overview, requests, memory over time, what-if and timeline of a session.
 * @param limitBytes maximum size of a page with a timeline
 * @returns the page, and a text about the parts of the timeline that it lacks; null if it has all
 * @throws E_USAGE for a session without an overview, or if the page exceeds `limitBytes` even with the shortest timeline
 */
export async function exportedPage(
  session: Session,
  limitBytes = maxBytes,
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
    const [execution] = await executionsOf(database);
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
    const whatIf = explain === null ? null : await exportedWhatIf(session, view, explain, places);
    const drawer = await script('ui-exported');
    const page = (data: string): string =>
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
                <script type="application/octet-stream">{raw(data)}</script>
              </>
            ),
          },
        },
      );
    const timeline = await startTimeline(database, execution);
    await readTimeline(database, timeline);
    const room = limitBytes - Buffer.byteLength(page(''));
    const fitted = await fitTimeline(database, session, timeline, windows, room);
    if (fitted === null)
      throw new InferscopeError('E_USAGE', {
        what: `the page of session ${session.id} is larger than ${formatBytes(limitBytes)}`,
        why: `Without its timeline it takes ${formatBytes(limitBytes - room)}.`,
        fix: `Write the report instead: inferscope report ${session.id}`,
      });
    return { html: page(fitted.data), note: fitted.note === '' ? null : fitted.note };
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
  placed: readonly Span[],
  room: number,
): Promise<{ data: string; note: string } | null> {
  const steps = await stepsOf(database, timeline);
  const counters = await countersOf(database, timeline);
  const stepEvents = await stepWindows(database, timeline, steps);
  const roofs = await readCallRoofs(session, database);
  const lanes = lanesIn(timeline).map(({ lane }) => lane);
  const events = lanes.reduce((sum, { length }) => sum + length, 0);
  const span = timeline.to - timeline.from;
  for (const plan of plans) {
    if (plan.events === 'all' && events > maxEvents) continue;
    if (plan.rows === 'all' && events > maxRows) continue;
    const windows = widenAndMerge(plan.places ? [...stepEvents, ...placed] : stepEvents, timeline);
    const level = Math.max(0, Math.ceil(Math.log2(span / Math.max(1, plan.bins))));
    const note = noteOf(plan, { windows, level, id: session.id });
    const data = encodeTimeline({
      shown: showTimeline(timeline, 0),
      names: timeline.names,
      counters,
      steps,
      note,
      lanes: lanes.map((lane) =>
        plan.events === 'all' || lane.length <= fewEvents
          ? lane
          : partOf(lane, windows, timeline.from, level),
      ),
      rows:
        plan.rows === 'none'
          ? {}
          : await rowsOf(database, timeline, plan.rows === 'all' ? null : windows, roofs),
    });
    const text = packBase64(data);
    if (text.length <= room) return { data: text, note };
  }
  return null;
}

function noteOf(
  { events, rows, places }: Plan,
  { windows, level, id }: { windows: readonly Span[]; level: number; id: string },
): string {
  if (events === 'all' && rows === 'all') return '';
  const shown = windows.reduce((sum, { start, end }) => sum + end - start, 0);
  const which = `the median and the slowest step of each kind${places ? ' and the places of findings' : ''} (${plural(windows.length, 'period')}, ${formatNs(shown)})`;
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

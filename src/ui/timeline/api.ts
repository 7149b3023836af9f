import { setTimeout } from 'node:timers/promises';
import { Hono } from 'hono';
import { etag } from 'hono/etag';
import type { Note } from '../../export/exporter.js';
import { InferscopeError } from '../../model/errors.js';
import { revalidated } from '../guard.js';
import { withDatabase } from '../open-session-pages.js';
import { countersOf } from './counters.js';
import { eventDetails } from './details.js';
import { encodeRecords, eventsPerLane } from './tile-format.js';
import { recordsOf } from './lane.js';
import { once, type OpenSession, type OpenSessions } from './open-timelines.js';
import { lanesIn, search } from './places.js';
import { stepsOf } from './steps.js';
import { selectedEvents, selection } from './selection.js';
import { showTimeline } from './show.js';
import type { EventLinks } from './shown.js';
import { storedRows } from './stored-rows.js';
import { trackClasses } from './tracks.js';

/** Time until a page draws the tables read so far. */
const readingMs = 200;

/**
 * The HTTP API of a timeline: its tracks, tiles, one event, sums and single events of a selection, a search, steps, counters, and the export
 * as a chrome trace.
 * @param note receives what an export changed or left out
 * @param links links from events to bars and findings
 */
export function timelineApi(
  opened: OpenSessions,
  note: Note,
  links: (openSession: OpenSession) => Promise<EventLinks>,
): Hono {
  const api = new Hono();
  const sessionOf = async (context: {
    req: { param(name: string): string | undefined; query(name: string): string | undefined };
  }) => {
    const id = context.req.param('id')!;
    const execution = context.req.query('execution') ?? '';
    const openSession = await opened.get(id);
    const { executions, session } = openSession;
    if (!executions.includes(execution)) throw usageError(`no execution ${execution}`);
    const { timeline, failed, read } = await opened.timeline(id, execution);
    if (failed !== null) throw usageError(failed);
    return { timeline, read, session, openSession };
  };

  api.get('/timeline', async (context) => {
    const { timeline, read } = await sessionOf(context);
    // The page asks again at once while tables are missing. A small timeline is complete in the first response.
    await Promise.race([read, setTimeout(readingMs, undefined, { ref: false })]);
    const known = Number(context.req.query('labels') ?? 0);
    return context.json(showTimeline(timeline, known));
  });
  api.use('/tiles', etag());
  api.get('/tiles', async (context) => {
    const { timeline } = await sessionOf(context);
    const level = integerIn(context.req.query('level'), 0, 50);
    const tile = integerIn(context.req.query('tile'), -1e12, 1e12);
    const lanes = lanesIn(timeline);
    const request = { zero: timeline.from, tile, level, maxEvents: eventsPerLane(lanes.length) };
    const records = lanes.flatMap(({ lane }, number) => recordsOf(lane, { ...request, number }));
    return context.body(encodeRecords(records).buffer, 200, {
      'content-type': 'application/octet-stream',
      'cache-control': revalidated,
    });
  });
  api.get('/event', async (context) => {
    const { timeline, session, openSession } = await sessionOf(context);
    const place = {
      lane: integerIn(context.req.query('lane'), 0, 1e9),
      index: integerIn(context.req.query('index'), 0, 1e12),
    };
    const { readCallRoofs } = await import('../../facts/gemms/gemm-calls.js');
    const details = await withDatabase(session, async (database) => {
      const roofs = await once(openSession, 'call roofs', () => readCallRoofs(session, database));
      return eventDetails(storedRows(database, timeline, roofs), timeline, place);
    });
    return context.json(details);
  });
  api.get('/links', async (context) => context.json(await links(await opened.get(context.req.param('id')!))));
  api.get('/selection', async (context) => {
    const { timeline } = await sessionOf(context);
    return context.json(
      selection(timeline, trackClasses, Number(context.req.query('start')), Number(context.req.query('end'))),
    );
  });
  api.get('/selected', async (context) => {
    const { timeline } = await sessionOf(context);
    const parameter = (name: string): string | undefined => context.req.query(name);
    return context.json(
      selectedEvents(timeline, trackClasses, {
        start: Number(parameter('start')),
        end: Number(parameter('end')),
        group: parameter('group') ?? '',
        name: parameter('name') ?? null,
        sort: parameter('sort') === 'start' ? 'start' : 'time',
        page: integerIn(parameter('page'), 1, 1e9),
      }),
    );
  });
  api.get('/search', async (context) => {
    const { timeline } = await sessionOf(context);
    return context.json(search(timeline, context.req.query('q') ?? '', Number(context.req.query('at') ?? 0)));
  });
  api.get('/steps', async (context) => {
    const { timeline, session } = await sessionOf(context);
    return context.json(await withDatabase(session, (database) => stepsOf(database, timeline)));
  });
  api.get('/counters', async (context) => {
    const { timeline, session } = await sessionOf(context);
    return context.json(await withDatabase(session, (database) => countersOf(database, timeline)));
  });
  api.get('/trace', async (context) => {
    const execution = context.req.query('execution') ?? '';
    const { executions, session } = await opened.get(context.req.param('id')!);
    if (!executions.includes(execution)) throw usageError(`no execution ${execution}`);
    const { traceDownload } = await import('./trace-download.js');
    const name = encodeURIComponent(`${session.id}-${execution}.trace.json.gz`);
    return context.body(traceDownload(session, execution, note), 200, {
      'content-type': 'application/gzip',
      'content-disposition': `attachment; filename*=UTF-8''${name}`,
    });
  });
  return api;
}

function integerIn(text: string | undefined, min: number, max: number): number {
  const value = Number(text);
  if (text === undefined || !Number.isInteger(value) || value < min || value > max)
    throw usageError(`${text} is not a valid number here`);
  return value;
}

const usageError = (why: string): InferscopeError =>
  new InferscopeError('E_USAGE', {
    what: 'The timeline was not read',
    why,
    fix: 'Open the page of the timeline again.',
  });

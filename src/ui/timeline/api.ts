import { Hono } from 'hono';
import { InferscopeError } from '../../model/errors.js';
import { classColors, phaseColor, type Colour } from '../../vocabulary/colours.js';
import { idleCauseLabel, idleCauses } from '../../vocabulary/idle-causes.js';
import { classLabel } from '../../vocabulary/op-classes.js';
import { stageLabels } from '../../vocabulary/stages.js';
import { cssColour } from '../../render/palette.js';
import { countersOf } from './counters.js';
import { eventDetails, selection } from './details.js';
import { encodeRecords, eventsPerLane, type LaneRecord } from './tile-format.js';
import { recordOf } from './lane.js';
import type { OpenSessions } from './open-timelines.js';
import { lanesIn, search } from './places.js';
import { stepsOf } from './steps.js';
import { trackClasses, trackTables, type Timeline, type Track, type TrackTable } from './tracks.js';
import type { TimelineShown } from './shown.js';

/** Reads of a timeline: what there is, tiles, one event, a selection, a name, steps. */
export function timelineApi(opened: OpenSessions): Hono {
  const api = new Hono();
  const of = async (context: {
    req: { param(name: string): string | undefined; query(name: string): string | undefined };
  }) => {
    const id = context.req.param('id')!;
    const execution = context.req.query('execution') ?? '';
    const { executions, session } = await opened.get(id);
    if (!executions.includes(execution)) throw wrong(`no execution ${execution}`);
    const { timeline, failed } = await opened.timeline(id, execution);
    if (failed !== null) throw wrong(failed);
    return { timeline, session };
  };

  api.get('/timeline', async (context) => {
    const { timeline } = await of(context);
    const known = Number(context.req.query('names') ?? 0);
    return context.json(shown(timeline, known));
  });
  api.get('/tiles', async (context) => {
    const { timeline } = await of(context);
    const level = whole(context.req.query('level'), 0, 50);
    const tile = whole(context.req.query('tile'), -1e12, 1e12);
    const lanes = lanesIn(timeline);
    const asked = { zero: timeline.from, tile, level, most: eventsPerLane(lanes.length) };
    const records = lanes
      .map(({ lane }, number): LaneRecord | null => recordOf(lane, { ...asked, number }))
      .filter((record) => record !== null);
    // A session never changes; while it is read the page asks with the number of lanes it knows.
    return context.body(encodeRecords(records).buffer, 200, {
      'content-type': 'application/octet-stream',
      'cache-control': timeline.reading === null ? 'private, max-age=86400, immutable' : 'no-store',
    });
  });
  api.get('/event', async (context) => {
    const { timeline, session } = await of(context);
    const place = {
      lane: whole(context.req.query('lane'), 0, 1e9),
      index: whole(context.req.query('index'), 0, 1e12),
    };
    const database = await session.connect();
    try {
      return context.json(await eventDetails(database, timeline, place));
    } finally {
      await database.close();
    }
  });
  api.get('/selection', async (context) => {
    const { timeline } = await of(context);
    return context.json(
      selection(timeline, Number(context.req.query('start')), Number(context.req.query('end'))),
    );
  });
  api.get('/search', async (context) => {
    const { timeline } = await of(context);
    const { count, next, previous } = search(
      timeline,
      context.req.query('q') ?? '',
      timeline.from + Number(context.req.query('at') ?? 0),
    );
    const relative = (match: typeof next) =>
      match && { ...match, start: match.start - timeline.from, end: match.end - timeline.from };
    return context.json({ count, next: relative(next), previous: relative(previous) });
  });
  api.get('/steps', async (context) => {
    const { timeline, session } = await of(context);
    const database = await session.connect();
    try {
      const steps = await stepsOf(database, timeline);
      return context.json(
        steps.map((one) => ({ ...one, label: stageLabels[one.kind as 'decode'] ?? one.kind })),
      );
    } finally {
      await database.close();
    }
  });
  api.get('/counters', async (context) => {
    const { timeline, session } = await of(context);
    const database = await session.connect();
    try {
      return context.json(await countersOf(database, timeline));
    } finally {
      await database.close();
    }
  });
  return api;
}

/** @param names number of names that the page has already */
function shown(timeline: Timeline, names: number): TimelineShown {
  let lane = 0;
  const tracks = timeline.tracks.map((track) => {
    const first = lane;
    lane += track.lanes.length;
    const { table, rank, pid, tid, device, stream } = track;
    return {
      table,
      label: labelOf(track),
      rank,
      pid,
      tid,
      device,
      stream,
      classes: [...track.classes],
      firstLane: first,
      lanes: track.lanes.length,
    };
  });
  return {
    zero: timeline.from,
    span: timeline.to - timeline.from,
    reading: timeline.reading,
    tables: [...trackTables],
    classes: Object.fromEntries(
      trackTables.map((table) => [table, trackClasses[table].map((id) => ({ id, ...look(table, id) }))]),
    ),
    tracks,
    names: timeline.names.slice(names),
  };
}

function labelOf({ table, tid, device, stream }: Track): string {
  if (table === 'gaps') return `GPU ${device} idle`;
  if (device !== null) return table === 'kernels' ? `stream ${stream}` : `copies, stream ${stream}`;
  return (
    { stages: 'stages', ops: 'operators', api_calls: 'API calls', gaps: '', kernels: '', copies: '' }[table] +
    ` · thread ${tid}`
  );
}

const apiColours: Record<string, Colour> = {
  launch: classColors.gemm,
  synchronization: idleCauses['synchronization']!.colour,
  copy: classColors.copy,
  allocation: classColors.quantization,
};

const apiLabels: Record<string, string> = {
  launch: 'launch call',
  synchronization: 'synchronisation',
  copy: 'copy call',
  other: 'other call',
};

/** Name and colour of a class, as everywhere. */
function look(table: TrackTable, id: string): { label: string; colour: string } {
  if (table === 'gaps') return { label: idleCauseLabel(id), colour: idleCauses[id]?.colour ?? '' };
  if (table === 'stages')
    return { label: stageLabels[id as 'decode'] ?? id, colour: cssColour(phaseColor(id as 'decode')) };
  if (table === 'api_calls')
    return { label: apiLabels[id] ?? id, colour: cssColour(apiColours[id] ?? 'idle') };
  return { label: classLabel(id), colour: classColors[id as 'gemm'] };
}

function whole(text: string | undefined, least: number, most: number): number {
  const value = Number(text);
  if (text === undefined || !Number.isInteger(value) || value < least || value > most)
    throw wrong(`${text} is not a number that a timeline has`);
  return value;
}

const wrong = (why: string): InferscopeError =>
  new InferscopeError('E_USAGE', {
    what: 'The timeline was not read',
    why,
    fix: 'Open the page of the timeline anew.',
  });

import { afterAll, beforeAll, expect, test } from 'vitest';
import { fixture, imported } from '../../facts/trace/test-import.js';
import type { Session } from '../../session/open.js';
import type { SessionDatabase } from '../../session/query.js';
import { testHome } from '../../session/test-folder.js';
import { eventDetails, type Row } from './details.js';
import { decodeTimeline, embeddedRows, encodeTimeline, timelineOf } from './embedded.js';
import { partOf } from './lane.js';
import { lanesIn, search } from './places.js';
import { selection } from './selection.js';
import { showTimeline } from './show.js';
import { stepsOf } from './steps.js';
import { rowsWithNames, storedRows } from './stored-rows.js';
import { trackTables, type Timeline } from './timeline.js';
import { readTimeline, startTimeline, trackClasses } from './tracks.js';

let session: Session;
let database: SessionDatabase;
let timeline: Timeline;

beforeAll(async () => {
  session = await imported(testHome(), 'nsys-sqlite', fixture('nsys-2025.3.1-h200/tiny-nsys.sqlite'));
  database = await session.connect();
  timeline = await startTimeline(database, 'profiled');
  await readTimeline(database, timeline);
});
afterAll(() => database.close());

test('a timeline in a file gives the same answers as its session', async () => {
  const rows: Record<string, Row[]> = {};
  for (const table of trackTables)
    rows[table] = await database.query<Row>(`${rowsWithNames(table)} ORDER BY e.start_ns`);
  const embedded = {
    shown: showTimeline(timeline, 0),
    names: timeline.names,
    counters: [],
    steps: await stepsOf(database, timeline),
    links: { 'decode gaps:host': [{ text: 'host', link: '#waterfall' }] },
    note: '',
    lanes: lanesIn(timeline).map(({ lane }) => lane),
    rows,
  };
  const file = decodeTimeline(encodeTimeline(embedded));
  const again = timelineOf(file);
  expect(file.links).toEqual(embedded.links);
  expect([again.from, again.to]).toEqual([timeline.from, timeline.to]);
  expect([again.names, again.labels]).toEqual([timeline.names, timeline.labels]);
  const [from, to] = [1e6, (timeline.to - timeline.from) / 2];
  expect(selection(again, trackClasses, from, to)).toEqual(selection(timeline, trackClasses, from, to));
  expect(search(again, 'elementwise', 0)).toEqual(search(timeline, 'elementwise', 0));
  for (const [lane, { lane: events }] of lanesIn(timeline).entries())
    for (const index of [0, events.length >> 1, events.length - 1])
      expect(
        await eventDetails(embeddedRows(file.rows), again, { lane, index }),
        `${lane}, ${index}`,
      ).toEqual(await eventDetails(storedRows(database, timeline), timeline, { lane, index }));
});

test('windows and coarse shares survive the file format; a share above 0 stays above 0', () => {
  const { lane } = lanesIn(timeline).find(({ track }) => track.table === 'kernels')!;
  const middle = (timeline.from + timeline.to) / 2;
  const part = partOf(lane, [{ start: middle, end: timeline.to }], timeline.from, 16);
  const shown = { ...showTimeline(timeline, 0), tracks: [] };
  const file = decodeTimeline(
    encodeTimeline({
      shown,
      names: [],
      counters: [],
      steps: [],
      links: {},
      note: 'n',
      lanes: [part],
      rows: {},
    }),
  );
  const [read] = file.lanes;
  expect([read!.length, read!.windows, file.note]).toEqual([part.length, part.windows, 'n']);
  for (const [i, { class: kind, shares }] of part.coarse!.classes.entries()) {
    const readShares = read!.coarse!.classes[i]!;
    expect(readShares.class).toBe(kind);
    for (const [bin, share] of shares.entries()) {
      expect(readShares.shares[bin]! > 0).toBe(share > 0);
      expect(Math.abs(readShares.shares[bin]! - share)).toBeLessThan(1 / 200);
    }
  }
});

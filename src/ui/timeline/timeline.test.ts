import { showTimeline } from './show.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sessionOf } from '../../facts/trace/test-hand.js';
import { fixture, imported } from '../../facts/trace/test-import.js';
import type { Session } from '../../session/open.js';
import type { SessionDatabase } from '../../session/query.js';
import { testHome } from '../../session/test-folder.js';
import { formatNs } from '../../vocabulary/format.js';
import { kernelLabel } from '../../vocabulary/kernel-label.js';
import { eventDetails } from './details.js';
import { recordsOf } from './lane.js';
import { lanesIn, search } from './places.js';
import { selectedEvents, selection } from './selection.js';
import { stepsOf } from './steps.js';
import { storedRows } from './stored-rows.js';
import { decodeRecords, encodeRecords, tileAt, type SharesRecord } from './tile-format.js';
import type { Timeline } from './timeline.js';
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

const number = async (sql: string): Promise<number> =>
  Number(Object.values((await database.query(sql))[0]!)[0]);

describe('a timeline of an nsys capture', () => {
  test('contains every event of the tables, each in its track', async () => {
    for (const table of ['kernels', 'copies', 'api_calls', 'stages'] as const) {
      const lanes = timeline.tracks.filter((track) => track.table === table).flatMap(({ lanes }) => lanes);
      expect(
        lanes.reduce((sum, { length }) => sum + length, 0),
        table,
      ).toBe(await number(`SELECT count(*) FROM ${table}`));
    }
    expect(timeline.from).toBe(
      await number(
        'SELECT min(start_ns) FROM (SELECT start_ns FROM kernels UNION ALL SELECT start_ns FROM stages UNION ALL SELECT start_ns FROM api_calls UNION ALL SELECT start_ns FROM copies UNION ALL SELECT start_ns FROM gaps)',
      ),
    );
    expect(timeline.reading).toBeNull();
  });

  test('has no overlapping events in a lane', () => {
    for (const { lane } of lanesIn(timeline))
      for (let i = 1; i < lane.length; i++) expect(lane.start[i]).toBeGreaterThanOrEqual(lane.end[i - 1]!);
  });

  test('splits gaps by cause into parts that sum to the gaps', async () => {
    const found = new Map<string, number>();
    for (const { lanes } of timeline.tracks.filter(({ table }) => table === 'gaps'))
      for (const lane of lanes)
        for (let i = 0; i < lane.length; i++) {
          const cause = trackClasses.gaps[lane.class[i]!]!;
          found.set(cause, (found.get(cause) ?? 0) + lane.end[i]! - lane.start[i]!);
        }
    for (const [cause, ns] of found)
      expect(ns, cause).toBe(await number(`SELECT sum(${cause}_ns) FROM gaps`));
    expect([...found.values()].reduce((sum, ns) => sum + ns, 0)).toBe(
      await number('SELECT sum(dur_ns) FROM gaps'),
    );
  });

  test('tracks of a table have different labels, also the short ones of narrow windows', () => {
    const { tracks } = showTimeline(timeline, 0);
    for (const name of ['label', 'short'] as const)
      expect(new Set(tracks.map((track) => `${track.rank} ${track[name]}`)).size, name).toBe(tracks.length);
    for (const { short } of tracks) expect(short.length).toBeLessThanOrEqual(14);
  });

  test('sums a selection as SQL does over the same time', async () => {
    const [from, to] = [20e6, 60e6];
    const { groups } = selection(timeline, trackClasses, from, to);
    const [start, end] = [timeline.from + from, timeline.from + to];
    const kernels = groups.find(({ table }) => table === 'kernels')!;
    const rows = await database.query<{ class: string; ns: number }>(
      `SELECT class, sum(least(start_ns + dur_ns, ${end}) - greatest(start_ns, ${start})) AS ns FROM kernels
       WHERE start_ns < ${end} AND start_ns + dur_ns > ${start} GROUP BY 1 ORDER BY 2 DESC`,
    );
    expect(rows.length).toBeGreaterThan(1);
    expect(kernels.classes.map(({ id, ns }) => [id, ns])).toEqual(rows.map(({ class: id, ns }) => [id, ns]));
    expect(kernels.names.reduce((sum, { count }) => sum + count, 0)).toBe(
      await number(`SELECT count(*) FROM kernels WHERE start_ns < ${end} AND start_ns + dur_ns > ${start}`),
    );
  });

  test('lists the events of a selection page by page, with the rows and the sum of SQL', async () => {
    const [from, to] = [20e6, 60e6];
    const [start, end] = [timeline.from + from, timeline.from + to];
    const { groups } = selection(timeline, trackClasses, from, to);
    for (const table of ['kernels', 'api_calls'] as const) {
      const { id: group, all } = groups.find((candidate) => candidate.table === table)!;
      for (const sort of ['time', 'start'] as const) {
        const rows: { start: number; ns: number }[] = [];
        const pageOf = (page: number) =>
          selectedEvents(timeline, trackClasses, { start: from, end: to, group, name: null, sort, page });
        const { pages, count, total_ns } = pageOf(1);
        for (let page = 1; page <= pages; page++) rows.push(...pageOf(page).rows);
        const inside = await database.query<{ start: number; ns: number }>(
          `SELECT start_ns - ${timeline.from} AS start, least(start_ns + dur_ns, ${end}) - greatest(start_ns, ${start}) AS ns
           FROM ${table} WHERE start_ns < ${end} AND start_ns + dur_ns > ${start} ORDER BY ${sort === 'time' ? 'ns DESC, 1' : '1, ns'}`,
        );
        expect(pages).toBeGreaterThan(2);
        expect([count, all.count, rows.length]).toEqual([inside.length, inside.length, inside.length]);
        expect(total_ns).toBe(inside.reduce((sum, { ns }) => sum + ns, 0));
        const keys = (selected: readonly { start: number; ns: number }[]) =>
          selected.map(({ start, ns }) => (sort === 'time' ? ns : start));
        expect(keys(rows)).toEqual(keys(inside));
        const starts = (selected: readonly { start: number }[]) =>
          selected.map((row) => row.start).sort((a, b) => a - b);
        expect(starts(rows)).toEqual(starts(inside));
        expect(pageOf(pages + 7)).toEqual(pageOf(pages));
      }
    }
  });

  test('lists the events of one name, each with its place', () => {
    const [start, end] = [20e6, 60e6];
    const { id: group, names } = selection(timeline, trackClasses, start, end).groups.find(
      ({ table }) => table === 'kernels',
    )!;
    const [, { name, count, ns }] = names as [unknown, (typeof names)[number]];
    const request = { start, end, group, name, sort: 'time', page: 1 } as const;
    const found = selectedEvents(timeline, trackClasses, request);
    expect([found.count, found.total_ns]).toEqual([count, ns]);
    for (const row of found.rows) {
      const { lane } = lanesIn(timeline)[row.lane]!;
      expect(timeline.names[lane.name[row.index]!]).toBe(name);
      expect(lane.start[row.index]! - timeline.from).toBe(row.start);
    }
    expect(selectedEvents(timeline, trackClasses, { ...request, group: 'none' })).toMatchObject({
      count: 0,
      rows: [],
    });
  });

  test('links a kernel to its launch and the launch to the kernel', async () => {
    const [row] = await database.query<{
      start_ns: number;
      api_start_ns: number;
      name: string;
      tile: string | null;
      stream: string;
    }>(
      'SELECT start_ns, api_start_ns, name, tile, stream FROM kernels WHERE api_start_ns IS NOT NULL ORDER BY start_ns LIMIT 1 OFFSET 100',
    );
    const lanes = lanesIn(timeline);
    const lane = lanes.findIndex(({ track }) => track.table === 'kernels' && track.stream === row!.stream);
    const details = await eventDetails(storedRows(database, timeline), timeline, {
      lane,
      index: lanes[lane]!.lane.firstStartingFrom(row!.start_ns),
    });
    expect(details?.title).toBe(kernelLabel(row!.name, row!.tile));
    expect(details?.named).toEqual({ page: 'kernels', name: row!.name });
    expect(details?.facts.find(({ name }) => name === 'grid')?.text).toMatch(/^\d+,\d+,\d+$/);
    expect(details?.launch?.start).toBe(row!.api_start_ns - timeline.from);
    // Distinguishable from the start of the kernel.
    const [number, unit] = details!.facts
      .find(({ name }) => name === 'API call starts')!
      .text.split('\u00A0');
    const callStart = Number(number!.replaceAll(/\s/g, '')) * { s: 1e9, ms: 1e6 }[unit as 's' | 'ms'];
    expect(Math.abs(callStart - row!.api_start_ns)).toBeLessThan((row!.start_ns - row!.api_start_ns) / 10);
    const back = await eventDetails(storedRows(database, timeline), timeline, details!.launch!.place);
    expect(back?.title).toMatch(/launch/i);
    expect(back?.launch?.place).toEqual({ lane, index: lanes[lane]!.lane.firstStartingFrom(row!.start_ns) });
    expect(await eventDetails(storedRows(database, timeline), timeline, { lane: 999, index: 0 })).toBeNull();
  });

  test('states how long a call returned after the start of what it launched', async () => {
    const [row] = await database.query<{ start_ns: number; stream: string; late_ns: number }>(
      `SELECT start_ns, stream, api_start_ns + api_dur_ns - start_ns AS late_ns FROM copies
       WHERE api_start_ns + api_dur_ns > start_ns ORDER BY start_ns LIMIT 1`,
    );
    const lanes = lanesIn(timeline);
    const lane = lanes.findIndex(({ track }) => track.table === 'copies' && track.stream === row!.stream);
    const place = { lane, index: lanes[lane]!.lane.firstStartingFrom(row!.start_ns) };
    const copy = await eventDetails(storedRows(database, timeline), timeline, place);
    const late = formatNs(row!.late_ns);
    expect(copy?.launch?.text).toBe(`launched by a call that returned ${late} after the copy started`);
    const call = await eventDetails(storedRows(database, timeline), timeline, copy!.launch!.place);
    expect(call?.launch?.text).toBe(`what it launched started ${late} before its return`);
  });

  test('finds names forwards, backwards and around the ends', async () => {
    const rows = await database.query<{ start_ns: number }>(
      `SELECT start_ns FROM kernels WHERE name ILIKE '%elementwise%' ORDER BY start_ns`,
    );
    const [first, second] = [rows[0]!.start_ns, rows[1]!.start_ns];
    const found = search(timeline, 'ElementWise', first - timeline.from);
    expect([found.count, found.next?.start, found.previous?.start]).toEqual([
      rows.length,
      second - timeline.from,
      rows.at(-1)!.start_ns - timeline.from,
    ]);
    const [kernel] = await database.query<{ name: string; tile: string | null; n: number }>(
      'SELECT name, any_value(tile) AS tile, count(*) AS n FROM kernels GROUP BY 1 ORDER BY length(name) DESC LIMIT 1',
    );
    const label = kernelLabel(kernel!.name, kernel!.tile);
    expect(label).not.toBe(kernel!.name);
    expect(search(timeline, kernel!.name, 0).count).toBe(kernel!.n);
    expect(search(timeline, label, 0).count).toBeGreaterThanOrEqual(kernel!.n);
    expect(search(timeline, 'no such name', 0)).toEqual({ count: 0, next: null, previous: null });
  });

  test('has the time of each class in tiles of every level, within 1 % of the capture', async () => {
    const lanes = lanesIn(timeline);
    const span = timeline.to - timeline.from;
    for (const level of [12, 16, 20]) {
      const found = new Map<number, number>();
      for (const [number, { track, lane }] of lanes.entries()) {
        if (track.table !== 'kernels') continue;
        for (let tile = 0; tile <= tileAt(span, level); tile++) {
          const request = { number, zero: timeline.from, tile, level, maxEvents: 0 };
          for (const record of decodeRecords(encodeRecords(recordsOf(lane, request)).buffer))
            for (const { class: kind, shares } of (record as SharesRecord).classes)
              found.set(
                kind,
                shares.reduce((sum, share) => sum + share * 2 ** level, found.get(kind) ?? 0),
              );
        }
      }
      expect(found.size).toBeGreaterThan(3);
      for (const [kind, ns] of found) {
        const truth = await number(
          `SELECT sum(dur_ns) FROM kernels WHERE class = '${trackClasses.kernels[kind]}'`,
        );
        expect(Math.abs(ns - truth) / span, `level ${level}`).toBeLessThan(0.01);
      }
    }
  });

  test('takes steps from the stages, with the median and the slowest', async () => {
    const steps = await stepsOf(database, timeline);
    expect(steps.map(({ kind }) => kind).slice(0, 2)).toEqual(['prefill', 'decode']);
    const decode = steps.find(({ kind }) => kind === 'decode')!;
    const where = `FROM stages WHERE kind = 'decode' AND stage_id = phase_id AND NOT coalesce(warmup, false)`;
    expect(decode.count).toBe(await number(`SELECT count(*) ${where}`));
    expect(decode.slowest.end - decode.slowest.start).toBe(
      await number(`SELECT max(end_ns - start_ns) ${where}`),
    );
    expect(decode.median.end - decode.median.start).toBe(
      await number(`SELECT quantile_disc(end_ns - start_ns, 0.5) ${where}`),
    );
  });
});

test('a call is a synchronization if the host waits in it, not if a stream does', async () => {
  const call = (name: string, start_ns: number) => ({
    name,
    start_ns,
    dur_ns: 10,
    execution_id: 'profiled',
  });
  const rows = { api_calls: [call('cudaStreamWaitEvent', 0), call('cudaStreamSynchronize', 20)] };
  const connection = await (await sessionOf(rows)).connect();
  const [{ execution_id } = { execution_id: '' }] = await connection.query<{ execution_id: string }>(
    'SELECT DISTINCT execution_id FROM api_calls',
  );
  const calls = await startTimeline(connection, execution_id);
  await readTimeline(connection, calls);
  const [lane] = calls.tracks.flatMap(({ lanes }) => lanes);
  expect([...lane!.class].map((kind) => trackClasses.api_calls[kind])).toEqual(['other', 'synchronization']);
  await connection.close();
});

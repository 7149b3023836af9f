import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { importers } from '../import/index.js';
import { createSession } from '../session/create.js';
import { homeFolders } from '../session/home.js';
import { openSession, type Session } from '../session/open.js';
import type { SessionDatabase } from '../session/query.js';
import { summary } from '../session/test-session.js';
import { chromeTrace } from './chrome-trace.js';
import { openMetrics } from './openmetrics.js';
import { copyTables } from './parquet.js';
import { speedscope } from './speedscope.js';

const folder = mkdtempSync(join(tmpdir(), 'inferscope-export-gpu-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const fixtures = 'test/fixtures/nsys-2025.3.1-h200';

async function imported(file: string): Promise<Session> {
  const home = homeFolders({ INFERSCOPE_HOME: join(folder, file) });
  const session = await createSession({ kind: 'import', label: 'gpu', home });
  const target = { sink: session.sink, workbench: session.workbench, scratch: folder };
  const zero = { realtime_ns: null, monotonic_ns: null };
  const context = { execution_id: 'clean', capture_id: 'c0', host: 'h', zero };
  const importer = importers.find(({ name }) => name === 'nsys-sqlite')!;
  await importer.load(join(fixtures, file), target, context);
  return openSession((await session.finish(summary)).id, home);
}

interface TraceEvent {
  ph: string;
  pid: number;
  tid: number;
  ts: number;
  dur: number;
  cat: string;
  name: string;
  id: number;
  args: Record<string, string | number>;
}

describe.each(['tiny-nsys.sqlite', 'tiny-graph.sqlite', 'tiny-graph-opaque.sqlite'])('%s', (file) => {
  let session: Session;
  let database: SessionDatabase;
  beforeAll(async () => {
    session = await imported(file);
    database = await session.connect();
  });
  afterAll(() => database.close());

  const text = async (format: typeof chromeTrace) => {
    let all = '';
    for await (const piece of format(session, database, () => {})) all += piece;
    return all;
  };
  const count = async (select: string): Promise<number> =>
    (await database.query<{ value: number }>(`SELECT (${select}) AS value`))[0]!.value;

  test('chrome-trace: has every row to the nanosecond, and no track has partially overlapping events', async () => {
    const { traceEvents: all } = JSON.parse(await text(chromeTrace)) as { traceEvents: TraceEvent[] };
    const spans = all.filter(({ ph }) => ph === 'X');
    const ns = (value: number): number => Math.round(value * 1000);
    for (const table of ['kernels', 'copies', 'api_calls', 'gaps']) {
      const tableSpans = spans.filter(({ cat }) => cat === table);
      expect(tableSpans.length, table).toBe(await count(`SELECT count(*) FROM ${table}`));
      const sum = tableSpans.reduce((total, { dur }) => total + ns(dur), 0);
      expect(sum, table).toBe(await count(`SELECT coalesce(sum(dur_ns), 0) FROM ${table}`));
    }
    const tracks = new Map<string, TraceEvent[]>();
    for (const span of spans) {
      const key = `${span.pid}/${span.tid}`;
      if (!tracks.has(key)) tracks.set(key, []);
      tracks.get(key)!.push(span);
    }
    for (const [track, trackSpans] of tracks) {
      // As in Perfetto: a stack of open slices; one that ends after its parent is dropped.
      const open: number[] = [];
      const ordered = trackSpans
        .map(({ ts, dur }) => [ns(ts), ns(ts) + ns(dur)] as const)
        .toSorted((a, b) => a[0] - b[0] || b[1] - a[1]);
      for (const [from, to] of ordered) {
        while (open.length > 0 && open.at(-1)! <= from) open.pop();
        expect(open.length === 0 || to <= open.at(-1)!, `${track} at ${from}`).toBe(true);
        open.push(to);
      }
    }
    const named = all.filter(({ name }) => name === 'thread_name').map(({ args }) => String(args['name']));
    expect(named.some((name) => /^GPU 0, stream \d+, process \d+$/.test(name))).toBe(true);
  });

  test('chrome-trace: has an arrow from every launch to the first activity it started', async () => {
    const { traceEvents: all } = JSON.parse(await text(chromeTrace)) as { traceEvents: TraceEvent[] };
    const [starts, ends] = ['s', 'f'].map((ph) => all.filter((event) => event.ph === ph));
    const launches = await count(
      `SELECT count(*) FROM (SELECT DISTINCT pid, correlation FROM (
         SELECT pid, correlation, api_start_ns FROM kernels UNION ALL SELECT pid, correlation, api_start_ns FROM copies)
       WHERE api_start_ns IS NOT NULL)`,
    );
    expect(launches).toBeGreaterThan(5);
    expect(new Set(starts!.map(({ id }) => id)).size).toBe(launches);
    expect(ends!.map(({ id }) => id).toSorted((a, b) => a - b)).toEqual(
      starts!.map(({ id }) => id).toSorted((a, b) => a - b),
    );
    const spans = all.filter(({ ph }) => ph === 'X');
    const firstStarts = new Set(spans.map(({ pid, tid, ts }) => `${pid}/${tid}/${ts}`));
    for (const { pid, tid, ts } of [...starts!, ...ends!])
      expect(firstStarts).toContain(`${pid}/${tid}/${ts}`);
    const begun = new Map(starts!.map(({ id, ts }) => [id, ts]));
    for (const { id, ts } of ends!) expect(ts).toBeGreaterThanOrEqual(begun.get(id)!);
  });

  test("speedscope: a stream's time below its phases equals that of its kernels and copies", async () => {
    const { profiles } = JSON.parse(await text(speedscope)) as {
      profiles: { name: string; events: { type: string; frame: number; at: number }[] }[];
    };
    const streams = profiles.filter(({ name }) => name.includes(', stream '));
    expect(streams.length).toBeGreaterThan(0);
    let busy = 0;
    for (const { events } of streams) {
      let depth = 0;
      let since = 0;
      for (const { type, at } of events) {
        if (type === 'O' && depth++ === 0) since = at;
        if (type === 'C' && --depth === 0) busy += at - since;
      }
      expect(depth).toBe(0);
    }
    const union = await count(
      `WITH work AS (SELECT device, stream, pid, start_ns, start_ns + dur_ns AS end_ns FROM kernels
                     UNION ALL SELECT device, stream, pid, start_ns, start_ns + dur_ns FROM copies),
       marked AS (SELECT *, max(end_ns) OVER (PARTITION BY device, stream, pid ORDER BY start_ns, end_ns
                  ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before FROM work)
       SELECT sum(greatest(0, end_ns - greatest(start_ns, coalesce(before, 0)))) FROM marked`,
    );
    expect(busy).toBe(union);
  });

  test('openmetrics: kernel time by class and phase, idle time by cause', async () => {
    const lines = (await text(openMetrics)).split('\n');
    const sum = (name: string): number =>
      lines
        .filter((line) => line.startsWith(`${name}_sum{`))
        .reduce((total, line) => total + Number(line.split(' ').at(-1)), 0);
    const warm = `stage_id NOT IN (SELECT stage_id FROM stages WHERE warmup)`;
    const kernels = await count(`SELECT coalesce(sum(dur_ns), 0) FROM kernels WHERE (${warm}) IS NOT FALSE`);
    expect(sum('inferscope_kernel_seconds') * 1e9).toBeCloseTo(kernels, 0);
    const parts = [
      'synchronization',
      'host',
      'launch_overhead',
      'launch_latency',
      'device_dependency',
      'unattributed',
    ];
    const idle = await count(
      `SELECT sum(${parts.map((part) => `coalesce(${part}_ns, 0)`).join(' + ')}) FROM gaps
       WHERE device IS NOT NULL AND (${warm}) IS NOT FALSE`,
    );
    expect(sum('inferscope_device_idle_seconds') * 1e9).toBeCloseTo(idle, 0);
  });

  test("parquet: the session's files unchanged, with descriptions of their columns", async () => {
    const to = mkdtempSync(join(folder, 'parquet-'));
    const written = await copyTables(session, to);
    expect(written.toSorted()).toEqual(
      (readdirSync(to, { recursive: true }) as string[]).filter((path) => path.includes('.')).toSorted(),
    );
    for (const [table, files] of Object.entries(session.manifest.tables)) {
      for (const { path } of files) {
        const name = path.split('/').at(-1)!;
        expect(readFileSync(join(to, table, name))).toEqual(readFileSync(join(session.folder, path)));
      }
    }
    expect(readFileSync(join(to, 'SCHEMA.md'), 'utf8')).toContain('| exclusive_ns | BIGINT |');
  });
});

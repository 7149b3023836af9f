import { join } from 'node:path';
import process from 'node:process';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { launchBrowser } from '../browser/chromium.js';
import { captures } from '../cli/capture-files.js';
import { inferscope, createSetup, tinyProfileArgs } from '../cli/run-cli.js';
import { openInPerfetto, servePerfetto, type Cell, type PerfettoUi } from './perfetto-ui.js';

const folder = process.env['INFERSCOPE_TEST_PERFETTO_UI'];
if (folder === undefined) throw new Error('npm run test:perfetto runs these tests');

const setup = createSetup();
let browser: Browser;
let page: Page;
let ui: PerfettoUi;
beforeAll(async () => {
  browser = await launchBrowser();
  ui = await servePerfetto(folder);
  page = await browser.newPage({ serviceWorkers: 'block' });
  // The UI requests news and analytics from the web.
  await page.route(
    (url) => url.hostname !== '127.0.0.1',
    (route) => route.abort(),
  );
});
afterAll(async () => {
  await browser?.close();
  ui?.close();
});

function run(...args: string[]): string {
  const { status, stdout, stderr } = inferscope(setup, args);
  expect(status, stderr).toBe(0);
  return stdout;
}

function rowsOf(session: string, query: string): Cell[][] {
  return (JSON.parse(run('sql', session, '--json', query)) as { data: { rows: Cell[][] } }).data.rows;
}

async function exportToPerfetto(
  session: string,
  ...more: string[]
): Promise<(sql: string) => Promise<Cell[][]>> {
  const path = join(setup.scratch, `${session}.json`);
  run('export', session, '--format', 'perfetto', '--output', path, ...more);
  return openInPerfetto(page, ui, path);
}

/** Number, total time and first start of events. A start is ns since the first event of its execution. */
const nameTotals = `count(*), sum(dur), min(ts)`;
const stage = `CASE WHEN kind = 'other' THEN coalesce(raw_name, kind) ELSE coalesce(kind, raw_name) END`;
const events = `(
  SELECT execution_id, 'kernels' AS category, coalesce(short_name, name) AS name, start_ns, dur_ns FROM kernels
  UNION ALL SELECT execution_id, 'copies', kind, start_ns, dur_ns FROM copies
  UNION ALL SELECT execution_id, 'api_calls', name, start_ns, dur_ns FROM api_calls
  UNION ALL SELECT execution_id, 'ops', coalesce(name, op_type), start_ns, dur_ns FROM ops
  UNION ALL SELECT execution_id, 'gaps', cause, start_ns, dur_ns FROM gaps
  UNION ALL SELECT execution_id, 'stages', ${stage}, start_ns, end_ns - start_ns FROM stages
  UNION ALL SELECT execution_id, 'stages', ${stage}, device_start_ns, device_end_ns - device_start_ns FROM stages
    WHERE device_start_ns IS NOT NULL
)`;
const zero = `(SELECT execution_id, min(t) AS zero FROM (
  SELECT execution_id, start_ns AS t FROM ${events} UNION ALL
  SELECT execution_id, t_ns FROM telemetry WHERE value IS NOT NULL UNION ALL SELECT execution_id, t_ns FROM memory) GROUP BY 1)`;

const sessions: [string, string[], string[]][] = [
  ['nsys-telemetry', ['import', '--quiet', captures.sqlite, captures.dmon], ['kernels', 'copies', 'gaps']],
  ['kineto', ['import', '--quiet', captures.kineto], ['kernels', 'copies', 'ops', 'gaps']],
  ['graph', ['import', '--quiet', captures.graph], ['kernels', 'gaps']],
  ['embedded', tinyProfileArgs(setup), ['ops']],
];

describe.each(sessions)('%s', (name, args, categories) => {
  let perfetto: (sql: string) => Promise<Cell[][]>;
  beforeAll(async () => {
    run(...args, '--name', name);
    perfetto = await exportToPerfetto(name);
  });

  test('Perfetto reports no lost data, and each execution starts at zero', async () => {
    expect(await perfetto(`SELECT name, value FROM stats WHERE severity <> 'info' AND value > 0`)).toEqual(
      [],
    );
    expect(await perfetto('SELECT start_ts FROM trace_bounds')).toEqual([[0]]);
    // All executions are checked: each is one process of the trace.
    const zeros = await perfetto(`SELECT DISTINCT min(ts) FROM (
      SELECT upid, ts FROM slice JOIN thread_track t ON t.id = track_id JOIN thread USING (utid)
      UNION ALL SELECT upid, ts FROM counter JOIN process_counter_track t ON t.id = track_id) GROUP BY upid`);
    expect(zeros).toEqual([[0]]);
  });

  test('events of each name have the number, time and first start of the session', async () => {
    const inPerfetto = await perfetto(
      `SELECT category, name, ${nameTotals} FROM slice GROUP BY 1, 2 ORDER BY 1, 2`,
    );
    const inSession = rowsOf(
      name,
      `SELECT category, name, count(*)::INT, sum(dur_ns)::BIGINT, min(start_ns - zero)::BIGINT
       FROM ${events} JOIN ${zero} USING (execution_id) GROUP BY 1, 2 ORDER BY 1, 2`,
    );
    expect(inPerfetto).toEqual(inSession);
    expect([...new Set(inSession.map(([category]) => category))]).toEqual(expect.arrayContaining(categories));
  });

  test('each stream of a device is a track with its kernels and copies', async () => {
    // Lanes "(2)" contain events that overlap others on one stream.
    const track = `CASE WHEN instr(thread.name, ' (') > 0 THEN substr(thread.name, 1, instr(thread.name, ' (') - 1) ELSE thread.name END`;
    const inPerfetto = await perfetto(
      `SELECT ${track} AS track, ${nameTotals} FROM slice JOIN thread_track t ON t.id = track_id JOIN thread USING (utid)
       WHERE category IN ('kernels', 'copies') GROUP BY 1 ORDER BY 1`,
    );
    const inSession = rowsOf(
      name,
      `SELECT concat('GPU ', device, ', stream ', stream, ', process ', pid) AS track,
         count(*)::INT, sum(dur_ns)::BIGINT, min(start_ns - zero)::BIGINT
       FROM (SELECT execution_id, device, stream, pid, start_ns, dur_ns FROM kernels
             UNION ALL SELECT execution_id, device, stream, pid, start_ns, dur_ns FROM copies)
       JOIN ${zero} USING (execution_id) GROUP BY 1 ORDER BY 1`,
    );
    expect(inPerfetto).toEqual(inSession);
  });

  test('Perfetto connects each launch to the kernel or copy that it started', async () => {
    const inSession = rowsOf(
      name,
      `SELECT count(*)::INT FROM (SELECT DISTINCT execution_id, capture_id, pid, correlation FROM (
         SELECT execution_id, capture_id, pid, correlation, api_start_ns FROM kernels UNION ALL
         SELECT execution_id, capture_id, pid, correlation, api_start_ns FROM copies) WHERE api_start_ns IS NOT NULL)`,
    );
    expect(await perfetto('SELECT count(*) FROM flow')).toEqual(inSession);
  });

  test('counters have the number, sum and first time of the session’s samples', async () => {
    // Perfetto appends the name of the argument (value, bytes) to the counter’s name.
    const inPerfetto = await perfetto(
      `SELECT t.name, count(*), sum(value), min(ts) FROM counter JOIN counter_track t ON t.id = track_id GROUP BY 1 ORDER BY 1`,
    );
    const inSession = rowsOf(
      name,
      `SELECT concat(scope, ' ', metric, CASE WHEN scope = 'process' THEN concat(', process ', pid) ELSE '' END, ' value') AS name,
         count(*)::INT, sum(value), min(t_ns - zero)::BIGINT
       FROM telemetry JOIN ${zero} USING (execution_id) WHERE value IS NOT NULL GROUP BY 1
       UNION ALL SELECT concat('memory ', kind, CASE WHEN device IS NULL THEN '' ELSE concat(', device ', device) END, ', process ', pid, ' bytes'),
         count(*)::INT, sum(bytes), min(t_ns - zero)::BIGINT
       FROM memory JOIN ${zero} USING (execution_id) WHERE bytes IS NOT NULL GROUP BY 1 ORDER BY 1`,
    );
    const withoutSums = (rows: Cell[][]) => rows.map(([label, count, , first]) => [label, count, first]);
    expect(withoutSums(inPerfetto)).toEqual(withoutSums(inSession));
    for (const [index, [label, , sum]] of inSession.entries())
      expect(Number(inPerfetto[index]![2]) / Number(sum) || 1, String(label)).toBeCloseTo(1, 9);
  });
});

test('a single execution starts at zero and has no events of other executions', async () => {
  const perfetto = await exportToPerfetto('embedded', '--execution', 'profiled');
  expect(await perfetto('SELECT start_ts FROM trace_bounds')).toEqual([[0]]);
  const [[stages, first]] = (await perfetto(
    `SELECT count(*), (SELECT min(t) FROM (SELECT min(ts) AS t FROM slice UNION ALL SELECT min(ts) FROM counter)) FROM slice WHERE category = 'stages'`,
  )) as [[number, number]];
  expect(first).toBe(0);
  expect([[stages]]).toEqual(
    rowsOf('embedded', `SELECT count(*)::INT FROM stages WHERE execution_id = 'profiled'`),
  );
});

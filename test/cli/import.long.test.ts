import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  truncateSync,
  writeFileSync,
  cpSync,
  rmSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect, test, vi } from 'vitest';
import { openSession } from '../../src/session/open.js';
import { captures, changedKineto, changedSqlite } from './capture-files.js';
import { expectFailure, inferscope, leftovers, place, sessions, start } from './profile-cli.js';

const setup = place();
afterAll(() => rmSync(setup.scratch, { recursive: true, force: true }));

const run = (...args: string[]) => inferscope(setup, ['import', '--quiet', ...args]);
// Rows are read in this process, because starting another one takes longer than the query.
vi.stubEnv('INFERSCOPE_HOME', setup.home);
/** Rows of a query on a session, as arrays. */
async function rows(query: string, selector = '@last'): Promise<unknown[][]> {
  const database = await (await openSession(selector)).connect();
  const found = await database.query(query);
  await database.close();
  return found.map((row) => Object.values(row));
}
const shown = async (selector = '@last') => (await openSession(selector)).manifest;

test('an artifact folder of AIPerf is one load point with one waterfall, and one run in comparisons', () => {
  const folder = (run: string) => {
    const path = join(setup.scratch, `artifacts-${run}`);
    mkdirSync(join(path, 'logs'), { recursive: true });
    for (const name of ['profile_export.jsonl', 'profile_export_aiperf.json'])
      cpSync(resolve(`test/fixtures/benchmark-results-recorded/aiperf-${run}-${name}`), join(path, name));
    writeFileSync(join(path, 'profile_export_aiperf.csv'), 'Metric,avg\n');
    return path;
  };
  const ran = inferscope(setup, ['import', folder('conc'), '--name', 'aiperf']);
  expect(ran.status, ran.stderr).toBe(0);
  expect(ran.stdout.match(/request at concurrency 2/gi)).toHaveLength(2); // the row of the stage and its waterfall
  expect(ran.stdout).toMatch(/^ {2}concurrency 2 +10 +17\.9 +215 /m);
  expect(inferscope(setup, ['import', folder('chunks'), '--name', 'chunks']).status).toBe(0);
  const compared = inferscope(setup, ['bench', 'compare', 'aiperf', 'chunks', '--json']);
  const { comparisons } = (JSON.parse(compared.stdout) as { data: { comparisons: { id: string }[] } }).data;
  // The session's own figures are compared: two files are not two launches.
  expect(comparisons.find(({ id }) => id === 'e2e')).toMatchObject({ n: [10, 6], verdict: 'within_process' });
});

describe('each format becomes a session', () => {
  const cases: [name: keyof typeof captures, importer: string, table: string, document: string][] = [
    ['sqlite', 'nsys-sqlite', 'kernels', 'trace'],
    ['graph', 'nsys-sqlite', 'kernels', 'trace'],
    ['parquetdir', 'nsys-parquetdir', 'kernels', 'trace'],
    ['kineto', 'kineto', 'kernels', 'trace'],
    ['ncuRaw', 'ncu-csv', 'counters', 'counters'],
    ['ncuDetails', 'ncu-csv', 'counters', 'counters'],
    ['cublas', 'cublas-log', 'gemms', 'gemms'],
    ['cublaslt', 'cublaslt-log', 'gemms', 'gemms'],
    ['inspector', 'nccl-inspector', 'collectives', 'collectives'],
    ['dmon', 'nvidia-smi-dmon', 'telemetry', 'monitor'],
    ['query', 'nvidia-smi-query', 'telemetry', 'monitor'],
  ];
  // One summary per kind of document; the analyses have their own tests.
  const summed = new Set<string>();
  test.each(cases)('%s', async (name, importer, table, document) => {
    const first = !summed.has(document);
    summed.add(document);
    const ran = run(captures[name], '--name', `of-${name}`, first ? '--json' : '--no-analyze');
    expect(ran.status, ran.stderr).toBe(0);
    const { captures: savedCaptures, artifacts } = await shown(`of-${name}`);
    expect(savedCaptures.map((capture) => capture.importer)).toEqual([importer]);
    expect(artifacts.map(({ kind }) => kind)).toEqual([importer]);
    expect(Number((await rows(`SELECT count(*) FROM ${table}`, `of-${name}`))[0]![0])).toBeGreaterThan(0);
    if (!first) return;
    expect(JSON.parse(ran.stdout)).toMatchObject({
      schema: expect.stringMatching(`^inferscope/${document}/`),
    });
  });
});

test('--json is a document of the published schema; without it a summary that ends with the report', async () => {
  const { traceDocumentSchema } = await import('../../src/model/documents/trace.js');
  traceDocumentSchema.parse(JSON.parse(run(captures.sqlite, '--json').stdout));
  const { stdout } = run(captures.sqlite);
  const report = stdout.trimEnd().split('report: ').at(-1)!;
  expect(report).toMatch(/report\.html$/);
  expect(readFileSync(report, 'utf8').slice(0, 15)).toBe('<!DOCTYPE html>');
});

test('several captures of one run are one session; more can be added', async () => {
  const joined = run(
    captures.sqlite,
    captures.ncuRaw,
    captures.cublaslt,
    captures.dmon,
    '--name',
    'joined',
    '--no-analyze',
    '--tag',
    'h200',
  );
  expect(joined.status, joined.stderr).toBe(0);
  const before = await shown('joined');
  expect(before.captures.map(({ tool }) => tool.name)).toHaveLength(4);
  expect(Object.keys(before.tables)).toEqual(
    expect.arrayContaining(['kernels', 'counters', 'gemms', 'telemetry']),
  );
  expect(run('--session', 'joined', captures.kineto, '--no-analyze').status).toBe(0);
  const after = await shown('joined');
  expect([after.id, after.captures.length]).toEqual([before.id, 5]);
  // The same file again becomes another capture with its own name.
  expect(run('--session', 'joined', captures.kineto, '--no-analyze').status).toBe(0);
  expect(new Set((await shown('joined')).captures.map((capture) => capture.capture_id)).size).toBe(6);
  expectFailure(run('--session', 'joined', '--name', 'x', '--json', captures.kineto), 2, 'E_USAGE');
  expectFailure(run('--session', 'joined', '--roofline', 'x', '--json', captures.kineto), 2, 'E_USAGE');
  expectFailure(run('--session', 'joined', '--model', 'gpt2', '--json', captures.kineto), 2, 'E_USAGE');
  expectFailure(run('--session', 'none-such', '--json', captures.kineto), 2, 'E_SESSION_NOT_FOUND');
});

test('--no-raw saves only tables; --no-analyze prints only the id; --model names the model', async () => {
  const ran = run(captures.kineto, '--no-raw', '--no-analyze', '--model', setup.tiny);
  const { id, artifacts, workload } = await shown();
  expect([ran.status, ran.stdout, artifacts]).toEqual([0, `${id}\n`, []]);
  expect(workload?.model?.name).toContain('tiny');
  expect(existsSync(join(setup.home, 'sessions', id, 'derived', 'report.html'))).toBe(false);
});

describe('a file that is not a capture gives one error and leaves nothing', () => {
  const bad = join(setup.scratch, 'bad');
  mkdirSync(bad);
  const file = (name: string, content: string | Buffer) => {
    writeFileSync(join(bad, name), content);
    return join(bad, name);
  };
  const cut = (name: string, from: string, share: number) => {
    cpSync(from, join(bad, name));
    truncateSync(join(bad, name), Math.floor(readFileSync(from).length * share));
    return join(bad, name);
  };
  const folder = join(bad, 'folder');
  mkdirSync(folder);
  const half = join(bad, 'half.parquetdir');
  cpSync(captures.parquetdir, half, { recursive: true });
  truncateSync(join(half, 'StringIds.parquet'), 100);
  const newer = "UPDATE META_DATA_EXPORT SET value = '99.1.0' WHERE name = 'EXPORT_SCHEMA_VERSION'";

  const cases: [what: string, code: string, path: string][] = [
    ['a missing file', 'E_TRACE_FILE', join(bad, 'none.sqlite')],
    ['an empty file', 'E_TRACE_FILE', file('empty.json', '')],
    ['a folder without a capture', 'E_FORMAT_UNKNOWN', folder],
    ['a text', 'E_FORMAT_UNKNOWN', file('notes.sqlite', 'Dear diary,\n')],
    [
      'random bytes',
      'E_FORMAT_UNKNOWN',
      file('random.json.gz', Buffer.from([0x1f, 0x8c, 3, 255, 0, 1, 200])),
    ],
    [
      'broken gzip',
      'E_TRACE_FILE',
      file('broken.json.gz', Buffer.from([0x1f, 0x8b, 8, 0, 99, 99, 99, 99, 99])),
    ],
    ['a cut-off SQLite capture', 'E_TRACE_FILE', cut('cut.sqlite', captures.sqlite, 0.6)],
    ['a cut-off Kineto trace', 'E_TRACE_FILE', cut('cut.json.gz', captures.kineto, 0.7)],
    ['a cut-off ncu page', 'E_TRACE_FILE', cut('cut.csv', captures.ncuRaw, 0.9)],
    ['a half parquet folder', 'E_TRACE_FILE', half],
    ['another SQLite database', 'E_TRACE_FILE', changedSqlite(bad, 'other.sqlite', 'DROP TABLE StringIds')],
    ['a capture of a newer nsys', 'E_TRACE_NEWER', changedSqlite(bad, 'newer.sqlite', newer)],
    [
      'a Chrome trace of a browser',
      'E_FORMAT_UNKNOWN',
      file('chrome.json', '{"traceEvents":[{"ph":"X","cat":"blink","name":"a","ts":1,"dur":2}]}'),
    ],
    [
      'a Kineto trace without events',
      'E_TRACE_FILE',
      file('bare.json', '{"schemaVersion": 1, "traceEvents": []}'),
    ],
  ];
  test.each(cases)('%s: %s', (_, code, path) => {
    const before = sessions(setup).length;
    const { what, why } = expectFailure(run('--json', path), 5, code);
    expect(`${what} ${why}`).toContain(path.split('/').at(-1)!);
    expect(sessions(setup)).toHaveLength(before);
    expect(leftovers(setup)).toEqual([]);
  });

  test('one bad file among good ones: nothing is saved, and an old session is unchanged', async () => {
    run(captures.dmon, '--name', 'old', '--no-analyze');
    const before = await shown('old');
    expectFailure(
      run('--json', '--session', 'old', captures.kineto, join(bad, 'cut.sqlite')),
      5,
      'E_TRACE_FILE',
    );
    expectFailure(run('--json', captures.kineto, join(bad, 'notes.sqlite')), 5, 'E_FORMAT_UNKNOWN');
    expect(await shown('old')).toEqual(before);
    expect(leftovers(setup)).toEqual([]);
  });

  test('hostile file names stay names', () => {
    const names = ['$(touch pwned); rm -rf ~ a\'b"c;--', '-o línea\nnueva …', '\u001b[31mred\u001b[0m'];
    for (const name of names) {
      const path = join(bad, `${name}.json.gz`);
      cpSync(captures.kineto, path);
      const good = run('--no-analyze', '--', path);
      expect(good.status, good.stderr).toBe(0);
      expect(good.stdout).toMatch(/^[\w.-]+\n$/);
      const damaged = join(bad, `${name}.sqlite`);
      writeFileSync(damaged, 'SQLite format 3\0 and nothing else');
      const ran = run('--json', '--', damaged);
      expectFailure(ran, 5, 'E_TRACE_FILE');
      expect(ran.stderr).not.toContain('\u001b[31mred');
    }
    expect(existsSync(join(setup.scratch, 'pwned'))).toBe(false);
    sessions(setup);
    const summary = run(join(bad, '\u001b[31mred\u001b[0m.json.gz'));
    expect([summary.status, summary.stdout.includes('\u001b')]).toEqual([0, false]);
  });

  test('hostile names in a capture stay text in the terminal and on the page', async () => {
    const names = [
      '</script><script>alert(1)</script>',
      '\u001b]0;title\u0007',
      "Robert'); DROP TABLE kernels;--",
      '..\\..\\../../etc/passwd',
    ];
    const path = changedKineto(bad, 'hostile.json', (trace) => {
      const ranges = trace.traceEvents.filter(({ cat }) => cat === 'user_annotation' || cat === 'kernel');
      ranges.forEach((event, i) => (event.name = names[i % names.length]!));
    });
    const { status, stdout, stderr } = run(path);
    expect(status, stderr).toBe(0);
    expect(stdout).not.toMatch(/\p{Cc}(?<!\n)/u);
    const page = readFileSync(stdout.trimEnd().split('report: ').at(-1)!, 'utf8');
    expect(page.includes('<script>alert(1)')).toBe(false);
    expect(
      Number((await rows("SELECT count(*) FROM kernels WHERE name LIKE '%DROP TABLE%'"))[0]![0]),
    ).toBeGreaterThan(0);
  });

  test('.nsys-rep and .ncu-rep without nsys and ncu', () => {
    // Only nsys and ncu can read these files, and this PATH has neither.
    const env = { PATH: join(bad, 'no-tools') };
    for (const [path, tool] of [
      [file('a.nsys-rep', 'NVIDIA Tegra Profiler Report 36398880.'), 'nsys'],
      [file('a.ncu-rep', 'NVR\0'), 'ncu'],
    ] as const) {
      const ran = inferscope(setup, ['import', '--quiet', '--json', path], env);
      // On a machine with CUDA the tools are found in their usual folders; then the error is about the report.
      if (ran.stdout.includes('E_TOOL_FAILED')) continue;
      expect(expectFailure(ran, 3, 'E_TOOL_MISSING').what).toContain(tool);
    }
    expect(leftovers(setup)).toEqual([]);
  });
});

test('Ctrl-C during an import leaves no session', async () => {
  const path = changedKineto(setup.scratch, 'long.json', ({ traceEvents }) => {
    const once = traceEvents.filter(({ ph }) => ph === 'X');
    for (let i = 1; i < 60; i++)
      for (const event of once) traceEvents.push({ ...event, ts: event.ts + i * 1e6 });
  });
  const before = sessions(setup).length;
  const { child, ended } = start(setup, ['import', '--json', path]);
  let talk = '';
  child.stderr!.on('data', (chunk) => (talk += String(chunk)));
  while (!talk.includes('reading') && child.exitCode === null) await sleep(5);
  process.kill(-child.pid!, 'SIGINT');
  const { status, stdout, stderr } = await ended;
  expect(status, stderr).toBe(130);
  expect(JSON.parse(stdout)).toMatchObject({ data: { code: 'E_INTERRUPTED', exit_code: 130 } });
  expect(sessions(setup)).toHaveLength(before);
  expect(leftovers(setup)).toEqual([]);
});

describe('damage', () => {
  test('launches without a kernel are reported with their count, and --json is still one document', () => {
    const path = changedSqlite(
      join(setup.scratch, 'bare'),
      'bare.sqlite',
      `DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL; DROP TABLE NVTX_EVENTS;
       DELETE FROM CUPTI_ACTIVITY_KIND_MEMCPY; DELETE FROM CUPTI_ACTIVITY_KIND_MEMSET`,
    );
    const ran = run(path, '--json');
    expect(ran.status, ran.stderr).toBe(0);
    const { schema, data } = JSON.parse(ran.stdout) as {
      schema: string;
      data: { import_issues: { code: string; severity: string; count?: number }[] };
    };
    expect(schema).toBe('inferscope/session-show/1.1');
    const lost = data.import_issues.find(({ code }) => code === 'no_kernels')!;
    expect(lost.severity).toBe('warning');
    expect(ran.stderr).toContain(`${lost.count} API calls launch kernels`);
    expect(JSON.parse(run(captures.kineto, '--json', '--no-analyze').stdout)).toMatchObject({
      schema: 'inferscope/session-show/1.1',
    });
  });

  test('nonsensical names, ids and shapes reach the report', () => {
    const path = changedKineto(join(setup.scratch, 'odd'), 'odd.json', ({ traceEvents }) => {
      for (const [i, event] of traceEvents.entries()) {
        if (event.cat === 'kernel' && i % 2 === 0) event.name = null as unknown as string;
        if (event.cat === 'cpu_op' && event.args) event.args['Input Dims'] = [[-1, 1e308, null], 'x', {}];
        if (event.args && 'correlation' in event.args) event.args['correlation'] = 1;
        if (typeof event.ts === 'number') event.ts = -event.ts;
      }
    });
    const ran = run(path, '--json');
    expect(ran.status, ran.stderr).toBe(0);
    expect(JSON.parse(ran.stdout)).toMatchObject({ schema: expect.stringMatching('^inferscope/trace/') });
  });

  test("export/*.parquet expanded by a shell is the folder; another program's Parquet file is explained", async () => {
    const files = readdirSync(captures.parquetdir).map((name) => join(captures.parquetdir, name));
    const ran = run(...files, '--name', 'globbed', '--no-analyze');
    expect(ran.status, ran.stderr).toBe(0);
    expect((await shown('globbed')).captures.map(({ importer }) => importer)).toEqual(['nsys-parquetdir']);
    mkdirSync(join(setup.scratch, 'alone'));
    const alone = join(setup.scratch, 'alone', 'part.parquet');
    cpSync(join(captures.parquetdir, 'StringIds.parquet'), alone);
    expect(expectFailure(run(alone, '--json'), 5, 'E_FORMAT_UNKNOWN').fix).toContain('whole folder');
  });

  test('a crash while reading Parquet is reported as a bad input file, and leaves nothing', async () => {
    const before = sessions(setup).length;
    const { child, ended } = start(setup, ['import', '--json', '--quiet', captures.parquetdir]);
    const children = () => {
      try {
        return readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim().split(' ');
      } catch {
        return [];
      }
    };
    const reads = (pid: string) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('parquetdir');
    while (!leftovers(setup).some((name) => name.startsWith('.tmp-')) && child.exitCode === null)
      await sleep(5);
    for (const pid of children().filter((pid) => pid && reads(pid))) process.kill(Number(pid), 'SIGSEGV');
    const { status, stdout, stderr } = await ended;
    expect(expectFailure({ status, stdout, stderr }, 5, 'E_TRACE_FILE').why).toContain('SIGSEGV');
    expect(sessions(setup)).toHaveLength(before);
    expect(leftovers(setup)).toEqual([]);
  });
});

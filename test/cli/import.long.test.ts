import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  truncateSync,
  writeFileSync,
  cpSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test, vi } from 'vitest';
import { openSession } from '../../src/session/open.js';
import { captures, writeChangedKineto, writeChangedSqlite } from './capture-files.js';
import {
  expectFailure,
  inferscope,
  unfinishedSessions,
  createSetup,
  listSessions,
  startCli,
} from './run-cli.js';

const setup = createSetup();

const runImport = (...args: string[]) => inferscope(setup, ['import', '--quiet', ...args]);
// Rows are read in this process, because starting another one takes longer than the query.
vi.stubEnv('INFERSCOPE_HOME', setup.home);
/** The first value of a query on a session. */
async function queryNumber(query: string, selector = '@last'): Promise<number> {
  const database = await (await openSession(selector)).connect();
  const [row] = await database.query(query);
  await database.close();
  return Number(Object.values(row!)[0]);
}
const manifestOf = async (selector = '@last') => (await openSession(selector)).manifest;

test('an artifact folder of AIPerf is one load point with one waterfall, and one run in comparisons', () => {
  const artifactFolder = (run: string) => {
    const path = join(setup.scratch, `artifacts-${run}`);
    mkdirSync(join(path, 'logs'), { recursive: true });
    for (const name of ['profile_export.jsonl', 'profile_export_aiperf.json'])
      cpSync(resolve(`test/fixtures/benchmark-results-recorded/aiperf-${run}-${name}`), join(path, name));
    writeFileSync(join(path, 'profile_export_aiperf.csv'), 'Metric,avg\n');
    return path;
  };
  const result = inferscope(setup, ['import', artifactFolder('conc'), '--name', 'aiperf']);
  expect(result.status, result.stderr).toBe(0);
  expect(result.stdout.match(/request at concurrency 2/gi)).toHaveLength(2); // In the table of stages and in its waterfall.
  expect(result.stdout).toMatch(/^ {2}concurrency 2 +10 +17\.9 +215 /m);
  expect(inferscope(setup, ['import', artifactFolder('chunks'), '--name', 'chunks']).status).toBe(0);
  const compared = inferscope(setup, ['bench', 'compare', 'aiperf', 'chunks', '--json']);
  const { comparisons } = (JSON.parse(compared.stdout) as { data: { comparisons: { id: string }[] } }).data;
  // The figures of the whole session are compared, because two files are not two launches.
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
  // Only the first import of each kind of document is analyzed; the analyses have their own tests.
  const analyzedDocuments = new Set<string>();
  test.each(cases)('%s', async (name, importer, table, document) => {
    const isFirst = !analyzedDocuments.has(document);
    analyzedDocuments.add(document);
    const result = runImport(captures[name], '--name', `of-${name}`, isFirst ? '--json' : '--no-analyze');
    expect(result.status, result.stderr).toBe(0);
    const { captures: savedCaptures, artifacts } = await manifestOf(`of-${name}`);
    expect(savedCaptures.map((capture) => capture.importer)).toEqual([importer]);
    expect(artifacts.map(({ kind }) => kind)).toEqual([importer]);
    expect(await queryNumber(`SELECT count(*) FROM ${table}`, `of-${name}`)).toBeGreaterThan(0);
    if (!isFirst) return;
    expect(JSON.parse(result.stdout)).toMatchObject({
      schema: expect.stringMatching(`^inferscope/${document}/`),
    });
  });
});

test('--json is a document of the published schema; without it a summary that ends with the report', async () => {
  const { traceDocumentSchema } = await import('../../src/model/documents/trace.js');
  traceDocumentSchema.parse(JSON.parse(runImport(captures.sqlite, '--json').stdout));
  const { stdout } = runImport(captures.sqlite);
  const report = stdout.trimEnd().split('report: ').at(-1)!;
  expect(report).toMatch(/report\.html$/);
  expect(readFileSync(report, 'utf8').slice(0, 15)).toBe('<!DOCTYPE html>');
});

test('several captures of one run become one session, to which more can be added', async () => {
  const joined = runImport(
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
  const before = await manifestOf('joined');
  expect(before.captures.map(({ tool }) => tool.name)).toHaveLength(4);
  expect(Object.keys(before.tables)).toEqual(
    expect.arrayContaining(['kernels', 'counters', 'gemms', 'telemetry']),
  );
  expect(runImport('--session', 'joined', captures.kineto, '--no-analyze').status).toBe(0);
  const after = await manifestOf('joined');
  expect([after.id, after.captures.length]).toEqual([before.id, 5]);
  // The same file again becomes another capture with its own name.
  expect(runImport('--session', 'joined', captures.kineto, '--no-analyze').status).toBe(0);
  expect(new Set((await manifestOf('joined')).captures.map((capture) => capture.capture_id)).size).toBe(6);
  expectFailure(runImport('--session', 'joined', '--name', 'x', '--json', captures.kineto), 2, 'E_USAGE');
  expectFailure(runImport('--session', 'joined', '--roofline', 'x', '--json', captures.kineto), 2, 'E_USAGE');
  expectFailure(runImport('--session', 'joined', '--model', 'gpt2', '--json', captures.kineto), 2, 'E_USAGE');
  expectFailure(runImport('--session', 'none-such', '--json', captures.kineto), 2, 'E_SESSION_NOT_FOUND');
});

test('--no-raw saves only tables; --no-analyze prints only the id; --model names the model', async () => {
  const result = runImport(captures.kineto, '--no-raw', '--no-analyze', '--model', setup.tiny);
  const { id, artifacts, workload } = await manifestOf();
  expect([result.status, result.stdout, artifacts]).toEqual([0, `${id}\n`, []]);
  expect(workload?.model?.name).toContain('tiny');
  expect(existsSync(join(setup.home, 'sessions', id, 'derived', 'report.html'))).toBe(false);
});

describe('a file that is not a capture gives one error and leaves nothing', () => {
  const bad = join(setup.scratch, 'bad');
  mkdirSync(bad);
  const writeBadFile = (name: string, content: string | Buffer) => {
    writeFileSync(join(bad, name), content);
    return join(bad, name);
  };
  const truncate = (name: string, from: string, share: number) => {
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
    ['an empty file', 'E_TRACE_FILE', writeBadFile('empty.json', '')],
    ['a folder without a capture', 'E_FORMAT_UNKNOWN', folder],
    ['a text file', 'E_FORMAT_UNKNOWN', writeBadFile('notes.sqlite', 'Dear diary,\n')],
    [
      'random bytes',
      'E_FORMAT_UNKNOWN',
      writeBadFile('random.json.gz', Buffer.from([0x1f, 0x8c, 3, 255, 0, 1, 200])),
    ],
    [
      'broken gzip',
      'E_TRACE_FILE',
      writeBadFile('broken.json.gz', Buffer.from([0x1f, 0x8b, 8, 0, 99, 99, 99, 99, 99])),
    ],
    ['a cut-off SQLite capture', 'E_TRACE_FILE', truncate('cut.sqlite', captures.sqlite, 0.6)],
    ['a cut-off Kineto trace', 'E_TRACE_FILE', truncate('cut.json.gz', captures.kineto, 0.7)],
    ['a cut-off ncu page', 'E_TRACE_FILE', truncate('cut.csv', captures.ncuRaw, 0.9)],
    ['a parquet folder with a truncated file', 'E_TRACE_FILE', half],
    [
      'another SQLite database',
      'E_TRACE_FILE',
      writeChangedSqlite(bad, 'other.sqlite', 'DROP TABLE StringIds'),
    ],
    ['a capture of a newer nsys', 'E_TRACE_NEWER', writeChangedSqlite(bad, 'newer.sqlite', newer)],
    [
      'a Chrome trace of a browser',
      'E_FORMAT_UNKNOWN',
      writeBadFile('chrome.json', '{"traceEvents":[{"ph":"X","cat":"blink","name":"a","ts":1,"dur":2}]}'),
    ],
    [
      'a Kineto trace without events',
      'E_TRACE_FILE',
      writeBadFile('bare.json', '{"schemaVersion": 1, "traceEvents": []}'),
    ],
  ];
  test.each(cases)('%s: %s', (_, code, path) => {
    const before = listSessions(setup).length;
    const { what, why } = expectFailure(runImport('--json', path), 5, code);
    expect(`${what} ${why}`).toContain(path.split('/').at(-1)!);
    expect(listSessions(setup)).toHaveLength(before);
    expect(unfinishedSessions(setup)).toEqual([]);
  });

  test('one bad file among good ones: nothing is saved, and an old session is unchanged', async () => {
    runImport(captures.dmon, '--name', 'old', '--no-analyze');
    const before = await manifestOf('old');
    expectFailure(
      runImport('--json', '--session', 'old', captures.kineto, join(bad, 'cut.sqlite')),
      5,
      'E_TRACE_FILE',
    );
    expectFailure(runImport('--json', captures.kineto, join(bad, 'notes.sqlite')), 5, 'E_FORMAT_UNKNOWN');
    expect(await manifestOf('old')).toEqual(before);
    expect(unfinishedSessions(setup)).toEqual([]);
  });

  test('hostile file names are neither run nor printed raw', () => {
    const names = ['$(touch pwned); rm -rf ~ a\'b"c;--', '-o línea\nnueva …', '\u001b[31mred\u001b[0m'];
    for (const name of names) {
      const path = join(bad, `${name}.json.gz`);
      cpSync(captures.kineto, path);
      const good = runImport('--no-analyze', '--', path);
      expect(good.status, good.stderr).toBe(0);
      expect(good.stdout).toMatch(/^[\w.-]+\n$/);
      const damaged = join(bad, `${name}.sqlite`);
      writeFileSync(damaged, 'SQLite format 3\0 and nothing else');
      const result = runImport('--json', '--', damaged);
      expectFailure(result, 5, 'E_TRACE_FILE');
      expect(result.stderr).not.toContain('\u001b[31mred');
    }
    expect(existsSync(join(setup.scratch, 'pwned'))).toBe(false);
    listSessions(setup);
    const summary = runImport(join(bad, '\u001b[31mred\u001b[0m.json.gz'));
    expect([summary.status, summary.stdout.includes('\u001b')]).toEqual([0, false]);
  });

  test('hostile names in a capture stay text in the terminal and on the page', async () => {
    const names = [
      '</script><script>alert(1)</script>',
      '\u001b]0;title\u0007',
      "Robert'); DROP TABLE kernels;--",
      '..\\..\\../../etc/passwd',
    ];
    const path = writeChangedKineto(bad, 'hostile.json', (trace) => {
      const ranges = trace.traceEvents.filter(({ cat }) => cat === 'user_annotation' || cat === 'kernel');
      ranges.forEach((event, i) => (event.name = names[i % names.length]!));
    });
    const { status, stdout, stderr } = runImport(path);
    expect(status, stderr).toBe(0);
    expect(stdout).not.toMatch(/\p{Cc}(?<!\n)/u);
    const page = readFileSync(stdout.trimEnd().split('report: ').at(-1)!, 'utf8');
    expect(page.includes('<script>alert(1)')).toBe(false);
    const query = "SELECT count(*) FROM kernels WHERE name LIKE '%DROP TABLE%'";
    expect(await queryNumber(query)).toBeGreaterThan(0);
  });

  test('.nsys-rep and .ncu-rep need nsys and ncu', () => {
    // Only nsys and ncu can read these files, and this PATH has neither.
    const env = { PATH: join(bad, 'no-tools') };
    for (const [path, tool] of [
      [writeBadFile('a.nsys-rep', 'NVIDIA Tegra Profiler Report 36398880.'), 'nsys'],
      [writeBadFile('a.ncu-rep', 'NVR\0'), 'ncu'],
    ] as const) {
      const result = inferscope(setup, ['import', '--quiet', '--json', path], env);
      // On a machine with CUDA the tools are found in their usual folders; then the error is about the report.
      if (result.stdout.includes('E_TOOL_FAILED')) continue;
      expect(expectFailure(result, 3, 'E_TOOL_MISSING').what).toContain(tool);
    }
    expect(unfinishedSessions(setup)).toEqual([]);
  });
});

test('Ctrl-C during an import leaves no session', async () => {
  const path = writeChangedKineto(setup.scratch, 'long.json', ({ traceEvents }) => {
    const spans = traceEvents.filter(({ ph }) => ph === 'X');
    for (let i = 1; i < 60; i++)
      for (const event of spans) traceEvents.push({ ...event, ts: event.ts + i * 1e6 });
  });
  const before = listSessions(setup).length;
  const { child, exit } = startCli(setup, ['import', '--json', path]);
  let progress = '';
  child.stderr!.on('data', (chunk) => (progress += String(chunk)));
  while (!progress.includes('reading') && child.exitCode === null) await sleep(5);
  process.kill(-child.pid!, 'SIGINT');
  const { status, stdout, stderr } = await exit;
  expect(status, stderr).toBe(130);
  expect(JSON.parse(stdout)).toMatchObject({ data: { code: 'E_INTERRUPTED', exit_code: 130 } });
  expect(listSessions(setup)).toHaveLength(before);
  expect(unfinishedSessions(setup)).toEqual([]);
});

describe('damaged and odd captures', () => {
  test('launches without a kernel are reported with their count, and --json is still one document', () => {
    const path = writeChangedSqlite(
      join(setup.scratch, 'bare'),
      'bare.sqlite',
      `DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL; DROP TABLE NVTX_EVENTS;
       DELETE FROM CUPTI_ACTIVITY_KIND_MEMCPY; DELETE FROM CUPTI_ACTIVITY_KIND_MEMSET`,
    );
    const result = runImport(path, '--json');
    expect(result.status, result.stderr).toBe(0);
    const { schema, data } = JSON.parse(result.stdout) as {
      schema: string;
      data: { import_issues: { code: string; severity: string; count?: number }[] };
    };
    expect(schema).toBe('inferscope/session-show/1.1');
    const lost = data.import_issues.find(({ code }) => code === 'no_kernels')!;
    expect(lost.severity).toBe('warning');
    expect(result.stderr).toContain(`${lost.count} API calls launch kernels`);
    expect(JSON.parse(runImport(captures.kineto, '--json', '--no-analyze').stdout)).toMatchObject({
      schema: 'inferscope/session-show/1.1',
    });
  });

  test('a capture with nonsensical names, ids, shapes and times is analyzed', () => {
    const path = writeChangedKineto(join(setup.scratch, 'odd'), 'odd.json', ({ traceEvents }) => {
      for (const [i, event] of traceEvents.entries()) {
        if (event.cat === 'kernel' && i % 2 === 0) event.name = null as unknown as string;
        if (event.cat === 'cpu_op' && event.args) event.args['Input Dims'] = [[-1, 1e308, null], 'x', {}];
        if (event.args && 'correlation' in event.args) event.args['correlation'] = 1;
        if (typeof event.ts === 'number') event.ts = -event.ts;
      }
    });
    const result = runImport(path, '--json');
    expect(result.status, result.stderr).toBe(0);
    expect(JSON.parse(result.stdout)).toMatchObject({ schema: expect.stringMatching('^inferscope/trace/') });
  });

  test('export/*.parquet expanded by a shell means the folder; for another Parquet file the error says so', async () => {
    const files = readdirSync(captures.parquetdir).map((name) => join(captures.parquetdir, name));
    const result = runImport(...files, '--name', 'globbed', '--no-analyze');
    expect(result.status, result.stderr).toBe(0);
    expect((await manifestOf('globbed')).captures.map(({ importer }) => importer)).toEqual([
      'nsys-parquetdir',
    ]);
    mkdirSync(join(setup.scratch, 'alone'));
    const alone = join(setup.scratch, 'alone', 'part.parquet');
    cpSync(join(captures.parquetdir, 'StringIds.parquet'), alone);
    expect(expectFailure(runImport(alone, '--json'), 5, 'E_FORMAT_UNKNOWN').fix).toContain('whole folder');
  });

  test('a crash while reading Parquet is reported as a bad input file, and leaves nothing', async () => {
    const before = listSessions(setup).length;
    const { child, exit } = startCli(setup, ['import', '--json', '--quiet', captures.parquetdir]);
    const children = () => {
      try {
        return readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim().split(' ');
      } catch {
        return [];
      }
    };
    const isReader = (pid: string) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('parquetdir');
    while (!unfinishedSessions(setup).some((name) => name.startsWith('.tmp-')) && child.exitCode === null)
      await sleep(5);
    for (const pid of children().filter((pid) => pid && isReader(pid))) process.kill(Number(pid), 'SIGSEGV');
    const { status, stdout, stderr } = await exit;
    expect(expectFailure({ status, stdout, stderr }, 5, 'E_TRACE_FILE').why).toContain('SIGSEGV');
    expect(listSessions(setup)).toHaveLength(before);
    expect(unfinishedSessions(setup)).toEqual([]);
  });
});

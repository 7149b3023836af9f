import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { expect, test } from 'vitest';
import { baselineMetricsSchema } from '../../src/model/documents/baseline-metrics.js';
import { benchDocumentSchema } from '../../src/model/documents/bench.js';
import { recordLineSchema, type RequestLine } from '../../src/model/record.js';
import {
  expectFailure,
  inferscope,
  unfinishedSessions,
  createSetup,
  plantRoofline,
  listSessions,
  startCli,
  waitForExit,
  waitForRecord,
  type TestSetup,
} from './run-cli.js';

const small = ['--input-len', '8', '--output-len', '4', '--threads', '1'];

function benchJson(setup: TestSetup, args: string[]) {
  const { status, stdout, stderr } = inferscope(setup, ['bench', ...args, '--json']);
  expect([status, stderr.match(/error.*/)?.[0]]).toEqual([0, undefined]);
  return { document: benchDocumentSchema.parse(JSON.parse(stdout)), stderr };
}

/** The request lines of a saved session, as the engine wrote them. */
function readRequests({ home }: TestSetup, id: string, execution: string): RequestLine[] {
  const path = join(home, 'sessions', id, 'artifacts', `${execution}-record`, `${execution}.jsonl`);
  return readFileSync(path, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => recordLineSchema.parse(JSON.parse(line)))
    .filter((line) => line.type === 'request');
}

const withoutWarmup = (lines: RequestLine[]) => lines.filter(({ warmup }) => !warmup);
const ms = (ns: number) => ns / 1e6;
const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;

test("latency: writes the document, the files and the report, with the means of the engine's records", () => {
  const setup = createSetup();
  const args = [
    'latency',
    '--model',
    setup.tiny,
    ...small,
    '--launches',
    '2',
    '--runs',
    '3',
    '--name',
    'first',
  ];
  const { document } = benchJson(setup, args);
  const { data, issues } = document;
  expect(issues.filter(({ severity }) => severity === 'error')).toEqual([]);
  expect([data.session.name, data.session.status, data.parts]).toEqual(['first', 'complete', ['latency']]);
  expect([data.protocol.launches, data.protocol.repeats]).toEqual([2, 3]);
  const [variant, ...otherVariants] = data.variants;
  expect([variant!.label, variant!.points.length, otherVariants]).toEqual(['defaults', 1, []]);
  const [point] = variant!.points;
  expect([point!.point, point!.outcome, point!.interleaved]).toEqual(['b1-p8-o4', 'measured', true]);

  const lines = withoutWarmup(readRequests(setup, data.session.id, 'bench-1'));
  expect(lines.map(({ launch }) => launch)).toEqual([0, 0, 0, 1, 1, 1]);
  const { ttft_ms: ttft, tpot_ms: tpot, e2e_ms: e2e } = point!.latency;
  if (!('mean' in ttft) || !('mean' in tpot) || !('mean' in e2e))
    throw new Error('a distribution is missing');
  expect([ttft.n, ttft.launches]).toEqual([6, 2]);
  expect(ttft.mean).toBeCloseTo(mean(lines.map((line) => ms(line.first_token_ns! - line.t_ns))), 9);
  expect(tpot.mean).toBeCloseTo(mean(lines.map((line) => ms(line.end_ns - line.first_token_ns!) / 3)), 9);
  expect(e2e.mean).toBeCloseTo(mean(lines.map((line) => ms(line.end_ns - line.t_ns))), 9);

  // The session includes the roofline, so expected latencies are known.
  expect(point!.expected.ttft).toMatchObject({ unit: 'ms' });
  expect(point!.machine.memory_bytes.value).toBeGreaterThan(1e7);
  const files = readdirSync(join(setup.scratch, 'results')).sort();
  expect(files).toEqual(['baseline_metrics.json', 'latency_results.csv']);
  const folder = join(setup.home, 'sessions', data.session.id);
  expect(readFileSync(join(folder, 'derived', 'report.html'), 'utf8')).toContain('batch 1, 8 in + 4 out');
  expect(listSessions(setup)).toHaveLength(1);
  expect(unfinishedSessions(setup)).toEqual([]);
});

test('a suite of two batches and two variants measures each shape once, alternates launches, and writes three CSV files', () => {
  const setup = createSetup();
  const output = join(setup.scratch, 'out');
  const args = [
    'suite',
    '--model',
    setup.tiny,
    ...small,
    '--batch-size',
    '1',
    '2',
    '--launches',
    '2',
    '--runs',
    '2',
  ];
  const arg = ['--engine-arg', 'graph_optimization=all,basic', '--output', output];
  const { document, stderr } = benchJson(setup, [...args, ...arg]);
  const { variants, session } = document.data;
  expect(variants.map(({ label }) => label)).toEqual(['graph_optimization=all', 'graph_optimization=basic']);
  for (const { points } of variants) {
    expect(points.map(({ point, parts, outcome }) => [point, parts, outcome])).toEqual([
      ['b1-p8-o4', ['latency', 'throughput', 'sequence'], 'measured'],
      ['b2-p8-o4', ['throughput'], 'measured'],
    ]);
  }
  const launches = ['bench-1', 'bench-2'].flatMap((execution) =>
    [0, 1].map((launch) => {
      const launchRequests = readRequests(setup, session.id, execution).filter(
        (request) => request.launch === launch,
      );
      const points = withoutWarmup(launchRequests).map(({ point }) => point);
      return {
        execution,
        launch,
        start: launchRequests[0]!.t_ns,
        end: launchRequests.at(-1)!.end_ns,
        points,
      };
    }),
  );
  // Launch 0 of both variants is followed by launch 1 of both, and each launch exits before the next starts.
  launches.sort((x, y) => x.start - y.start);
  expect(launches.map(({ execution, launch }) => `${execution}/${launch}`)).toEqual([
    'bench-1/0',
    'bench-2/0',
    'bench-1/1',
    'bench-2/1',
  ]);
  for (const [i, { start }] of launches.entries())
    if (i > 0) expect(start).toBeGreaterThan(launches[i - 1]!.end);
  const [b1, b2] = ['b1-p8-o4', 'b2-p8-o4'];
  expect(launches.map(({ points }) => points)).toEqual([
    [b1, b2, b2, b1],
    [b1, b2, b2, b1],
    [b2, b1, b1, b2],
    [b2, b1, b1, b2],
  ]);
  expect(readdirSync(output).sort()).toEqual([
    'baseline_metrics.json',
    'latency_results.csv',
    'sequence_length_results.csv',
    'throughput_results.csv',
  ]);
  const metrics = baselineMetricsSchema.parse(
    JSON.parse(readFileSync(join(output, 'baseline_metrics.json'), 'utf8')),
  );
  expect(metrics.points).toHaveLength(4);
  expect(readFileSync(join(output, 'throughput_results.csv'), 'utf8').trimEnd().split('\n')).toHaveLength(5);
  expect(stderr).toContain('launch 2/2');
});

test('Ctrl-C exits with 130, and the measurements are saved as a session with its files', async () => {
  const setup = createSetup();
  const sizes = ['--input-len', '8', '--output-len', '60', '--threads', '1', '--runs', '400'];
  const args = ['bench', 'throughput', '--model', setup.slow, ...sizes, '--batch-size', '1,2', '--json'];
  const { child, exit } = startCli(setup, args);
  await waitForRecord(setup, 'bench-1', (line) => line.type === 'request' && line.warmup === false);
  process.kill(-child.pid!, 'SIGINT');
  const { status, stdout, stderr } = await exit;
  expect([status, stderr.includes('error')], stderr).toEqual([130, false]);
  const { data } = benchDocumentSchema.parse(JSON.parse(stdout));
  expect(data.session.status).toBe('interrupted');
  expect(stderr).toContain(data.session.id);
  // An incomplete point with figures counts as measured, and states the number of its repeats.
  const [incomplete] = data.variants[0]!.points;
  expect([incomplete!.outcome, incomplete!.text]).toEqual([
    'measured',
    expect.stringMatching(/Stopped after \d+ of 400 timed repeats/),
  ]);
  expect(withoutWarmup(readRequests(setup, data.session.id, 'bench-1')).length).toBeGreaterThanOrEqual(1);
  expect(existsSync(join(setup.scratch, 'results', 'throughput_results.csv'))).toBe(true);
  expect(listSessions(setup).map((session) => session.status)).toEqual(['interrupted']);
});

test('kill -9 of the engine loses only its current point; another process measures the rest', async () => {
  const setup = createSetup();
  const sizes = [
    '--input-len',
    '8',
    '--output-len',
    '30',
    '--threads',
    '1',
    '--runs',
    '6',
    '--launches',
    '1',
  ];
  const args = ['bench', 'throughput', '--model', setup.slow, ...sizes, '--batch-size', '1,2', '--json'];
  const { exit } = startCli(setup, args);
  const first = await waitForRecord(
    setup,
    'bench-1',
    (line) => line.type === 'request' && line.warmup === false,
  );
  process.kill(first.pid, 'SIGKILL');
  const { status, stdout, stderr } = await exit;
  expect(status, stderr).toBe(0);
  const { data } = benchDocumentSchema.parse(JSON.parse(stdout));
  const [b1, b2] = data.variants[0]!.points;
  const lines = withoutWarmup(readRequests(setup, data.session.id, 'bench-1'));
  // An engine killed at batch 1 is not started with a larger batch. If it was killed at batch 2, batch 1 has its six repeats.
  if (b1!.outcome === 'out_of_memory') {
    expect(b2!.outcome).toBe('skipped');
  } else {
    expect([b1!.outcome, b2!.outcome]).toEqual(['measured', 'out_of_memory']);
    expect(lines.filter(({ batch_size: batch }) => batch === 1)).toHaveLength(6);
    expect(new Set(lines.map(({ pid }) => pid)).size).toBe(2);
  }
  expect(new Set(lines.map(({ iteration }) => iteration)).size).toBe(lines.length);
  expect(stderr).toContain('out of memory');
  await waitForExit(first.pid);
});

test('a benchmark without a measurement exits with 4 and the engine’s error, and saves no session', async () => {
  const setup = createSetup();
  const sizes = ['--input-len', '8', '--output-len', '200', '--threads', '1'];
  const { exit } = startCli(setup, ['bench', 'latency', '--model', setup.slow, ...sizes, '--json']);
  const { pid } = await waitForRecord(
    setup,
    'bench-1',
    (line) => line.type === 'stage' || line.type === 'model',
  );
  process.kill(pid, 'SIGKILL');
  const result = await exit;
  expect(expectFailure(result, 4, 'E_OUT_OF_MEMORY').why).toContain('SIGKILL');
  expect(listSessions(setup)).toEqual([]);
  expect(unfinishedSessions(setup)).toEqual([]);
});

test('invalid input gives an error in three parts with its exit code, and nothing is measured', () => {
  const setup = createSetup();
  plantRoofline(setup.home);
  const fail = (args: string[], exitCode: number, code: string) =>
    expectFailure(inferscope(setup, ['bench', ...args, '--json']), exitCode, code);
  const model = ['--model', setup.tiny];
  const arg = fail(['latency', ...model, '--engine-arg', 'thread=2'], 2, 'E_USAGE');
  expect([arg.what, arg.fix]).toEqual([
    'the embedded engine has no argument thread',
    'Example: --engine-arg threads=1,2',
  ]);
  expect(fail(['latency', '--engine', 'vlm'], 2, 'E_USAGE').fix).toContain('--engine vllm');
  expect(fail(['throughput', ...model, '--batch-size', '1,0'], 2, 'E_USAGE').what).toContain(
    '--batch-size 0',
  );
  expect(fail(['latency', ...model, '--batch-size', '1,2'], 2, 'E_USAGE').fix).toContain('bench throughput');
  // The context of the tiny model is 256 tokens.
  expect(fail(['latency', ...model, '--input-len', '250'], 2, 'E_LENGTHS').why).toContain('256');
  expect(fail(['suite', ...model, '--url', 'http://localhost:1'], 2, 'E_USAGE').fix).toContain(
    '--engine openai',
  );
  expect(fail(['latency', ...model, '--device', 'cuda'], 2, 'E_USAGE').why).toContain('CPU');
  expect(fail(['latency', ...model, '--weights', 'trained'], 2, 'E_USAGE').what).toContain('random weights');
  writeFileSync(join(setup.scratch, 'file'), '');
  expect(fail(['latency', ...model, '--output', 'file'], 2, 'E_USAGE').what).toContain('--output file');
  expect(listSessions(setup)).toEqual([]);
});

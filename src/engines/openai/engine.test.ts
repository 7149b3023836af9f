import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { abortAfter, startProgrammedServer, type ProgrammedServer } from '../../load/test-server.js';
import { type BenchOrder, benchPoint, type BenchProgress } from '../../model/bench.js';
import type { EngineRequest } from '../../model/engine.js';
import { type RecordLine, recordLineSchema } from '../../model/record.js';
import { openaiEngine } from './engine.js';
import { batchTimes } from './measure-batch.js';
import { notesOf } from './run-round.js';

let server: ProgrammedServer;
const root = mkdtempSync(join(tmpdir(), 'inferscope-openai-'));
beforeAll(async () => {
  server = await startProgrammedServer();
});
afterAll(() => {
  server.stop();
  rmSync(root, { recursive: true });
});

const requestWith = (engineArgs: Record<string, string> = {}, change: Partial<EngineRequest> = {}) =>
  openaiEngine.prepare({
    model: '',
    weights: null,
    dtype: null,
    device: null,
    threads: null,
    engineArgs,
    url: server.url,
    python: null,
    ...change,
  });

let records = 0;
async function round(
  engineArgs: Record<string, string>,
  points: BenchOrder['points'],
  { repeats = 3, signal = new AbortController().signal } = {},
) {
  const engine = await requestWith(engineArgs);
  const recordPath = join(root, `record-${records++}.jsonl`);
  const progress: BenchProgress[] = [];
  const order: BenchOrder = {
    v: 1,
    execution_id: 'bench-1',
    launch: 1,
    first_iteration: 40,
    model: '',
    weights: 'trained',
    dtype: null,
    device: null,
    engine_args: engineArgs,
    points,
    repeats,
    warmup: { min: 1, max: 2, within: 0.5 },
    device_work: false,
    seed: 1,
  };
  const ended = await engine.launch(order, {
    recordPath,
    scratch: root,
    signal,
    onProgress: (event) => progress.push(event),
  }).ended;
  const lines = readFileSync(recordPath, 'utf8')
    .trim()
    .split('\n')
    .map((line): RecordLine => recordLineSchema.parse(JSON.parse(line)));
  const linesOf = <T extends RecordLine['type']>(type: T) =>
    lines.filter((line): line is Extract<RecordLine, { type: T }> => line.type === type);
  return { engine, ended, progress, linesOf };
}

const body = (fields: Record<string, unknown>) => ({ extra_body: JSON.stringify(fields) });

describe('a round against a server with known delays', () => {
  test("figures agree with the server's log, and repeats of the points alternate", async () => {
    await server.readLog();
    const points = [benchPoint(['latency'], 1, 12, 8), benchPoint(['throughput'], 3, 12, 8)];
    const { ended, linesOf, progress, engine } = await round(body({ first_ms: 40, gap_ms: 5 }), points);
    expect(ended.failure).toBeNull();
    expect(engine.notMeasured).toHaveProperty('launches');
    expect(engine.workload).toMatchObject({ model: null, engine: { name: 'vLLM' } });
    const requests = linesOf('request');
    const timed = requests.filter(({ warmup }) => !warmup);
    expect(timed.map(({ point }) => point)).toEqual(
      Array.from({ length: 3 }, () => ['b1-p12-o8', 'b3-p12-o8']).flat(),
    );
    expect(requests.map(({ iteration }) => iteration)).toEqual(requests.map((_, index) => 40 + index));
    expect(requests.every(({ launch, input_len }) => launch === 1 && input_len === 12)).toBe(true);
    // The server runs on the same clock, so its log lines between this batch's first send and last content belong to
    // the batch.
    const log = await server.readLog();
    for (const { t_ns, end_ns, first_token_ns, tpot_ns, batch_size } of timed) {
      const batchLog = log.filter(({ read_ns }) => read_ns >= t_ns && read_ns <= end_ns);
      expect(batchLog).toHaveLength(batch_size);
      const truth = (pick: (request: (typeof batchLog)[number]) => number) =>
        batchLog.reduce((sum, request) => sum + pick(request), 0) / batchLog.length;
      // Sends and receipts are outside the server's time stamps. By how much depends on the machine, not on this code.
      const [first, last] = [first_token_ns! - t_ns, first_token_ns! + 7 * tpot_ns! - t_ns];
      expect(first).toBeGreaterThanOrEqual(truth(({ read_ns, writes_ns }) => writes_ns[0]! - read_ns));
      expect(last).toBeGreaterThanOrEqual(truth(({ read_ns, writes_ns }) => writes_ns.at(-1)! - read_ns));
      // A batch of one ends with its last token; with several, the mean is at most the end of the last stream.
      if (batch_size === 1) expect(Math.abs(last - (end_ns - t_ns))).toBeLessThan(2);
      else expect(last).toBeLessThanOrEqual(end_ns - t_ns);
      expect(end_ns).toBeGreaterThanOrEqual(Math.max(...batchLog.map(({ writes_ns }) => writes_ns.at(-1)!)));
    }
    expect(linesOf('point').map(({ outcome }) => outcome)).toEqual(['measured', 'measured']);
    expect(linesOf('point')[0]!.warmup_iterations).toBe(
      requests.filter(({ point, warmup }) => warmup && point === 'b1-p12-o8').length,
    );
    expect(
      linesOf('telemetry').some(({ scope, metric }) => scope === 'server' && metric === 'requests_running'),
    ).toBe(true);
    expect(linesOf('clock')).toHaveLength(2);
    expect(progress.filter(({ type }) => type === 'point')).toHaveLength(2);
  });

  test.each([
    [
      'ignores_max',
      'failed',
      'a stream had 24 tokens, not the requested 8 (finish_reason length): it ignores max_tokens',
    ],
    ['no_usage', 'failed', '--engine-arg tokenizer=PATH'],
    ['busy', 'failed', '2 of 2 streams failed: HTTP 429: slow down'],
    ['cut', 'failed', 'stream cut off'],
    ['empty', 'failed', 'no generated text'],
  ])('%s fails the point with its reason, and measures nothing', async (fault, outcome, text) => {
    const { linesOf, ended } = await round(body({ fault }), [benchPoint(['latency'], 2, 4, 8)]);
    expect(linesOf('request')).toEqual([]);
    expect(linesOf('point')).toMatchObject([{ outcome, stable: false }]);
    expect(linesOf('point')[0]!.text).toContain(text);
    expect(ended.log).toContain(text);
  });

  test('reports a batch with unexpected or cached prompts', () => {
    const point = benchPoint(['latency'], 2, 6, 2);
    expect(notesOf({ input_tokens: 6, cached_tokens: 0 }, point)).toEqual([]);
    expect(notesOf({ input_tokens: 7, cached_tokens: 12 }, point)).toEqual([
      "prompts had 7 tokens by the server's count, not 6: --engine-arg tokenizer=PATH makes them exact",
      'the server took 12 prompt tokens of a batch from its prefix cache',
    ]);
  });

  test('stopping ends the current batch and keeps the measured ones', async () => {
    const controller = new AbortController();
    const aborted = abortAfter(server, 24, controller);
    const { linesOf, ended } = await round(
      body({ first_ms: 50, gap_ms: 10 }),
      [benchPoint(['latency'], 1, 4, 8)],
      { repeats: 1000, signal: controller.signal },
    );
    await aborted;
    expect(ended.failure).toBeNull();
    expect(linesOf('request').length).toBeGreaterThan(0);
    expect(linesOf('point')).toMatchObject([{ outcome: 'stopped' }]);
  });
});

test('times of a batch by hand: two streams sent at 0 and 2, first content at 10 and 14, last at 40 and 34', () => {
  const times = batchTimes(
    [
      { sent_ns: 100, chunk_ns: [110, 120, 130, 140] },
      { sent_ns: 102, chunk_ns: [114, 134] },
    ],
    4,
  );
  // TTFT 10 and 12: mean 11. TPOT 30/3 and 20/3: mean 25/3.
  expect(times).toEqual({ begin_ns: 100, first_token_ns: 111, end_ns: 140, tpot_ns: 25 / 3 });
  expect(batchTimes([{ sent_ns: 5, chunk_ns: [9] }], 1).tpot_ns).toBeNull();
});

describe('requests that prepare rejects', () => {
  test.each([
    [{ url: null }, {}, 'E_USAGE', '--url'],
    [{ url: 'ftp://x' }, {}, 'E_USAGE', '--url'],
    [{ dtype: 'float16' }, {}, 'E_USAGE', '--dtype'],
    [{ model: 'other' }, {}, 'E_MODEL_NOT_FOUND', '--model programmed'],
    [{ url: 'http://127.0.0.1:1' }, {}, 'E_SERVER_UNREACHABLE', 'host and port'],
    [{}, { modes: 'eager' }, 'E_USAGE', 'tokenizer'],
    [{}, { api: 'grpc' }, 'E_USAGE', 'api'],
    [{}, { extra_body: '[1]' }, 'E_USAGE', 'extra_body'],
    [{}, { tokenizer: join(root, 'none') }, 'E_MODEL_FILE', 'tokenizer.json'],
  ])('%j %j: %s', async (change, args, code, fix) => {
    await expect(requestWith(args as Record<string, string>, change)).rejects.toMatchObject({
      code,
      parts: { fix: expect.stringContaining(fix) },
    });
  });
  test("uses the server's first model if none is named", async () => {
    expect((await requestWith()).workload.engine.options['model']).toBe('programmed');
  });
});

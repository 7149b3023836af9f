import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { build } from 'tsdown';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { packageRoot } from '../model/installation.js';
import type { PlannedRequest } from './load-shape.js';
import type { PointControl } from './run-point.js';
import { startProgrammedServer, type ProgrammedServer, testTarget } from './test-server.js';
import { runLoad } from './threads.js';
import type { ThreadPlan } from './worker-messages.js';

const folder = mkdtempSync(join(tmpdir(), 'inferscope-threads-'));
const entry = join(folder, 'load-worker.mjs');
let server: ProgrammedServer;

beforeAll(async () => {
  symlinkSync(join(packageRoot(), 'node_modules'), join(folder, 'node_modules'), 'junction');
  await build({
    config: false,
    entry: { 'load-worker': 'src/load/worker.ts' },
    format: 'esm',
    platform: 'node',
    target: 'node20',
    outDir: folder,
    clean: false,
    dts: false,
    logLevel: 'silent',
    outExtensions: () => ({ js: '.mjs' }),
  });
  server = await startProgrammedServer();
}, 60_000);
afterAll(() => {
  server.stop();
  rmSync(folder, { recursive: true, force: true });
});

function makePlan(count: number, outputTokens: number, change: Partial<ThreadPlan> = {}): ThreadPlan {
  const requests = Array.from({ length: count }, (_, index): PlannedRequest => ({
    index,
    prompt: `prompt ${index}`,
    input_tokens: null,
    output_tokens: outputTokens,
    warmup: false,
    due_ns: null,
  }));
  const target = testTarget(server, { first_ms: 5, gap_ms: 2 });
  const loop = { loop: 'closed' as const, concurrency: 6, ramp_s: 0, seconds: Number.POSITIVE_INFINITY };
  return { target, requests, ...loop, ...change };
}

const quiet: PointControl = { signal: new AbortController().signal };

test('one or three threads send every request once, twice in one process, and exit', async () => {
  const workers = () => process.getActiveResourcesInfo().filter((name) => name === 'MessagePort').length;
  const before = workers();
  for (const threads of [1, 3, 1]) {
    const counts: number[] = [];
    const control = { ...quiet, onProgress: ({ done }: { done: number }) => counts.push(done) };
    const outcome = await runLoad(makePlan(30, 40), threads, control, entry);
    expect(outcome.threads).toHaveLength(threads);
    expect(outcome.exchanges.map(({ index }) => index)).toEqual(Array.from({ length: 30 }, (_, i) => i));
    for (const exchange of outcome.exchanges) {
      expect([exchange.status, exchange.chunk_ns.length]).toEqual(['ok', 40]);
      expect(exchange.sent_ns!).toBeGreaterThanOrEqual(outcome.begin_ns);
      expect(exchange.closed_ns).toBeLessThanOrEqual(outcome.end_ns);
    }
    // Five rounds of 6 users take 85 ms each, so progress was reported in between.
    expect(counts.length).toBeGreaterThan(0);
    // The server received each prompt once, and all threads use its clock.
    const log = await server.readLog();
    expect(new Set(log.map(({ prompt }) => prompt)).size).toBe(30);
    expect(log).toHaveLength(30);
    for (const { prompt, writes_ns: writes } of log) {
      const exchange = outcome.exchanges[Number(prompt.split(' ')[1])]!;
      exchange.chunk_ns.forEach((ns, index) => expect(ns).toBeGreaterThanOrEqual(writes[index]!));
    }
  }
  expect(workers()).toBe(before);
});

test('users start together in all threads', async () => {
  const outcome = await runLoad(makePlan(6, 4), 3, quiet, entry);
  const sent = outcome.exchanges.map(({ scheduled_ns: ns }) => ns);
  expect(new Set(sent)).toEqual(new Set([outcome.begin_ns]));
});

test('stopping ends all threads and keeps finished requests', async () => {
  const controller = new AbortController();
  let reports = 0;
  const onProgress = ({ in_flight: flying }: { in_flight: number }) => {
    if (flying === 6 && ++reports === 4) controller.abort();
  };
  const { exchanges } = await runLoad(
    makePlan(50, 5000),
    2,
    { signal: controller.signal, onProgress },
    entry,
  );
  expect(exchanges).toHaveLength(6);
  for (const exchange of exchanges) {
    expect(exchange.status).toBe('cancelled');
    expect(exchange.chunk_ns.length).toBeGreaterThan(1);
  }
  // Stopped before the start: nothing is sent.
  await server.readLog();
  const none = await runLoad(makePlan(5, 5), 2, { signal: AbortSignal.abort() }, entry);
  expect(none.exchanges).toEqual([]);
  expect(await server.readLog()).toEqual([]);
});

test('a thread that cannot work ends the load with its error', async () => {
  const broken = join(folder, 'broken.mjs');
  writeFileSync(broken, 'throw new Error("no such engine");');
  await expect(runLoad(makePlan(4, 4), 2, quiet, broken)).rejects.toThrow('no such engine');
  writeFileSync(broken, 'process.exit(3);');
  await expect(runLoad(makePlan(4, 4), 1, quiet, broken)).rejects.toThrow('exited with code 3');
  const badUrl = { ...testTarget(server), baseUrl: 'nonsense' };
  await expect(runLoad(makePlan(4, 4, { target: badUrl }), 1, quiet, entry)).rejects.toThrow('Invalid URL');
});

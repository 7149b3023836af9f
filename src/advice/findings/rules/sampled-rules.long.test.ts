import { afterAll, describe, expect, test } from 'vitest';
import type { Workload } from '../../../model/manifest.js';
import type { Row } from '../../../model/tables.js';
import { importSession } from '../../../session/archive-import.js';
import type { SessionSummary } from '../../../session/create.js';
import { openSession, type Session } from '../../../session/open.js';
import type { SessionDatabase } from '../../../session/query.js';
import { testHome } from '../../../session/test-folder.js';
import { tinyWorkload, type Rows, sessionOf } from '../../../facts/test-session.js';
import { findingContext } from '../findings.js';
import { expectEvidence } from '../test-evidence.js';
import { allFired, fired } from '../test-steps.js';
import type { Rule, RuleOutcome } from '../rule.js';
import { allocatorFragmentation } from './allocator-fragmentation.js';
import { anotherProcess } from './another-process.js';
import { cpuByAccident } from './cpu-by-accident.js';
import { idleRecording } from './idle-recording.js';
import { kvPoolSmall } from './kv-pool-small.js';
import { prefixCacheArtifact } from './prefix-cache-artifact.js';
import { throttling } from './throttling.js';

const home = testHome();
const second = 1e9;
const gib = 2 ** 30;
const open: SessionDatabase[] = [];
afterAll(async () => {
  for (const database of open) await database.close();
});

async function outcome(rule: Rule, session: Session): Promise<RuleOutcome> {
  const database = await session.connect();
  open.push(database);
  const result = await rule.find(await findingContext(session, database, null, []));
  if (result.outcome === 'fired') await expectEvidence(session, allFired(result));
  return result;
}

async function outcomeOf(
  rule: Rule,
  rows: Rows,
  options: { kind?: string; workload?: Workload | null; manifest?: Partial<SessionSummary> } = {},
): Promise<RuleOutcome> {
  return outcome(
    rule,
    await sessionOf(home, rows, { kind: 'run', roofline: null, workload: null, ...options }),
  );
}

const sample = (t: number, metric: string, value: number, scope = 'gpu0'): Row<'telemetry'> => ({
  t_ns: Math.round(t * second),
  scope,
  metric,
  value,
});
const bytes = (t: number, kind: string, value: number, more: Row<'memory'> = {}): Row<'memory'> => ({
  t_ns: Math.round(t * second),
  device: 0,
  kind,
  bytes: value * gib,
  ...more,
});

/** 4 s of work at 10 Hz, from 2 s on throttled to 1485 of 1980 MHz by `bits`. */
const clocks = (bits: number): Row<'telemetry'>[] =>
  Array.from({ length: 41 }, (_, tick) => tick / 10).flatMap((t) => [
    sample(t, 'utilization_percent', 100),
    sample(t, 'throttle_bits', t >= 2 ? bits : 0),
    sample(t, 'sm_clock_mhz', t >= 2 && bits !== 0 ? 1485 : 1980),
  ]);
const steps: Row<'stages'>[] = [
  { stage_id: 0, kind: 'prefill', start_ns: 0.5 * second, end_ns: second, warmup: false },
  { stage_id: 1, kind: 'decode', start_ns: second, end_ns: 3 * second, warmup: false },
];

describe('throttling', () => {
  test('is reported with its reason, clock drop and affected stages', async () => {
    const finding = fired(await outcomeOf(throttling, { telemetry: clocks(0x4), stages: steps }));
    // 1485 of 1980 MHz is a quarter less. Decode lasts from 1 to 3 s, of which 2 to 3 s are throttled.
    expect(finding.title).toMatch(
      /^Throttled: power cap limited GPU 0 for 50 % of the time, with a 25 % lower clock, in 50 % of decode$/,
    );
    expect(finding).toMatchObject({ at_stake_ms: null, gain: null, stage: null });
    expect(finding.change.example).toContain('POWER');
    expect(fired(await outcomeOf(throttling, { telemetry: clocks(0x40) })).change.text).toContain('too hot');
  });

  test('is not reported with steady clocks, an idle GPU, or without samples', async () => {
    expect(await outcomeOf(throttling, { telemetry: clocks(0) })).toMatchObject({ outcome: 'not_fired' });
    const idle = clocks(0x1).map((row) => (row.metric === 'sm_clock_mhz' ? { ...row, value: 1980 } : row));
    expect(await outcomeOf(throttling, { telemetry: idle })).toMatchObject({ outcome: 'not_fired' });
    expect(await outcomeOf(throttling, {})).toMatchObject({ outcome: 'not_applicable' });
    // A log without throttle reasons, the default of nvidia-smi: throttling is unknown, not "no".
    const withoutReasons = clocks(0).filter(({ metric }) => metric !== 'throttle_bits');
    expect(await outcomeOf(throttling, { telemetry: withoutReasons })).toMatchObject({
      outcome: 'not_applicable',
    });
  });

  test('reports the power cap and the pause of a recorded H200', async () => {
    const { id } = await importSession('test/fixtures/monitor-0.1-h200/session.tar.gz', home);
    const session = await openSession(id, home);
    // ORIGIN.md: GEMMs for 4 s and 3 s, with nothing in the 3 s between.
    expect(fired(await outcome(throttling, session)).title).toMatch(/power cap/);
    expect(fired(await outcome(idleRecording, session)).title).toMatch(
      /^Idle GPU: GPU 0 was idle for \d\d %/,
    );
  });
});

describe('another process', () => {
  const processRows = (most: number) =>
    Array.from({ length: 20 }, (_, i) => sample(i / 10, 'compute_processes', i < 10 ? most : 1));

  test("is reported by the driver's process count, or by memory in use before the program starts", async () => {
    expect(fired(await outcomeOf(anotherProcess, { telemetry: processRows(3) })).title).toContain(
      'up to 3 compute processes',
    );
    const memory = [bytes(0, 'used', 30), bytes(2, 'used', 50)];
    const laterStage = { ...steps[0]!, start_ns: second };
    expect(fired(await outcomeOf(anotherProcess, { memory, stages: [laterStage] })).title).toContain(
      '30.0 GiB in use by another process before',
    );
  });

  test("is not reported for one process, its own context, or the program's memory", async () => {
    expect(await outcomeOf(anotherProcess, { telemetry: processRows(1) })).toMatchObject({
      outcome: 'not_fired',
    });
    const memory = [bytes(0, 'used', 0.6), bytes(2, 'used', 50)];
    expect(
      await outcomeOf(anotherProcess, { memory, stages: [{ ...steps[0]!, start_ns: second }] }),
    ).toMatchObject({
      outcome: 'not_fired',
    });
    expect(await outcomeOf(anotherProcess, {})).toMatchObject({ outcome: 'not_applicable' });
  });
});

describe('allocator fragmentation', () => {
  const reservedMemory = (allocated: number, reserved: number) => ({
    memory: [
      bytes(1, 'allocated', allocated, { point: 'peak' }),
      bytes(1, 'reserved', reserved, { point: 'peak' }),
    ],
  });
  test('is reported from a fifth of the reserved memory and half a gibibyte on', async () => {
    expect(fired(await outcomeOf(allocatorFragmentation, reservedMemory(6, 10))).title).toBe(
      'Fragmented memory: 4.00 GiB of 10.0 GiB reserved on GPU 0 is unused (40 %)',
    );
    expect(await outcomeOf(allocatorFragmentation, reservedMemory(9, 10))).toMatchObject({
      outcome: 'not_fired',
    });
    // Half of a small reserve is below the minimum.
    expect(await outcomeOf(allocatorFragmentation, reservedMemory(0.2, 0.4))).toMatchObject({
      outcome: 'not_fired',
    });
    expect(await outcomeOf(allocatorFragmentation, { memory: [bytes(1, 'used', 10)] })).toMatchObject({
      outcome: 'not_applicable',
    });
  });
});

describe('KV cache too small', () => {
  const server = (usage: number, preempted: number, waiting: number) => ({
    telemetry: [0, 1].flatMap((t) => [
      sample(t, 'kv_cache_usage_ratio', usage, 'server'),
      sample(t, 'preemptions_total', 7 + t * preempted, 'server'),
      sample(t, 'requests_waiting', waiting, 'server'),
    ]),
  });
  test('is reported for preemptions, or for a full cache while requests wait', async () => {
    expect(fired(await outcomeOf(kvPoolSmall, server(0.9, 3, 0))).title).toBe(
      'KV cache too small: 3 requests were preempted',
    );
    expect(fired(await outcomeOf(kvPoolSmall, server(0.99, 0, 5))).title).toContain(
      '99 % full while up to 5 requests waited',
    );
  });
  test('is not reported for a full cache without waiting requests, or without records', async () => {
    expect(await outcomeOf(kvPoolSmall, server(0.99, 0, 0))).toMatchObject({ outcome: 'not_fired' });
    expect(await outcomeOf(kvPoolSmall, server(0.4, 0, 9))).toMatchObject({
      outcome: 'not_fired',
      why: 'No request was preempted; the KV cache was 40 % full at most.',
    });
    const usageOnly = { telemetry: [sample(0, 'kv_cache_usage_ratio', 0.4, 'server')] };
    expect(await outcomeOf(kvPoolSmall, usageOnly)).toMatchObject({
      why: 'The KV cache was 40 % full at most.',
    });
    expect(await outcomeOf(kvPoolSmall, {})).toMatchObject({ outcome: 'not_applicable' });
  });
});

test('reports the prefix cache if it held more than a twentieth of the prompt tokens', async () => {
  const requests = (cached: number | null) => ({
    requests: [0, 1].map((i) => ({
      request_id: String(i),
      status: 'ok',
      input_tokens: 100,
      cached_tokens: cached,
      warmup: false,
    })),
  });
  expect(fired(await outcomeOf(prefixCacheArtifact, requests(50))).title).toBe(
    'Prefix cache: 50 % of the prompt tokens were not computed',
  );
  expect(await outcomeOf(prefixCacheArtifact, requests(2))).toMatchObject({ outcome: 'not_fired' });
  expect(await outcomeOf(prefixCacheArtifact, requests(null))).toMatchObject({ outcome: 'not_applicable' });
});

describe('CPU by accident', () => {
  const onCpu = tinyWorkload({ engine: { name: 'transformers', version: '5', options: {} } });
  const gpu = { hardware: { gpu_name: 'NVIDIA H200' } };
  test('is reported if the machine has a GPU and the command does not request the CPU', async () => {
    expect(fired(await outcomeOf(cpuByAccident, {}, { workload: onCpu, manifest: gpu })).title).toContain(
      'although this machine has NVIDIA H200',
    );
    const requestedGpu = { ...gpu, command: ['python', 'infer.py', '--device', 'auto'] };
    expect(await outcomeOf(cpuByAccident, {}, { workload: onCpu, manifest: requestedGpu })).toMatchObject({
      outcome: 'fired',
    });
  });
  test('is not reported if the CPU was requested, without a GPU, or for the embedded engine', async () => {
    for (const words of [
      ['infer.py', '--device', 'cpu'],
      ['infer.py', '--device=cpu'],
      ['-c', 'f(device="cpu")'],
    ]) {
      const requestedCpu = { ...gpu, command: ['python', ...words] };
      expect(await outcomeOf(cpuByAccident, {}, { workload: onCpu, manifest: requestedCpu })).toMatchObject({
        outcome: 'not_fired',
      });
    }
    expect(await outcomeOf(cpuByAccident, {}, { workload: onCpu })).toMatchObject({
      outcome: 'not_applicable',
    });
    expect(await outcomeOf(cpuByAccident, {}, { workload: tinyWorkload(), manifest: gpu })).toMatchObject({
      outcome: 'not_fired',
    });
    expect(
      await outcomeOf(cpuByAccident, {}, { workload: { ...onCpu, device: 'cuda:0' }, manifest: gpu }),
    ).toMatchObject({
      outcome: 'not_fired',
    });
  });
});

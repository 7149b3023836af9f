import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import {
  expectFailure,
  inferscope,
  unfinishedSessions,
  createSetup,
  profileJson,
  listSessions,
  tinyProfileArgs,
} from './run-cli.js';
import { expectSums, type Profile, stageOf } from './profile-sums.js';

const setup = createSetup();
describe('a tiny model, two launches', () => {
  let profile: Profile;
  const output = join(setup.scratch, 'out', 'tiny.html');
  beforeAll(() => {
    const more = ['--launches', '2', '--batch-size', '2', '--name', 'first', '--tag', 'a', '--tag', 'b'];
    profile = profileJson(setup, [...tinyProfileArgs(setup, ...more), '--output', output]);
  });

  test('the document has the requested values', () => {
    const { data } = profile;
    expect(data.workload).toMatchObject({
      batch_size: 2,
      input_len: 8,
      output_len: 4,
      threads: 1,
      device: 'cpu',
    });
    expect(data.session.status).toBe('complete');
    expect(data.latency).toMatchObject({ repeats: 2, launches: 2 });
    expect(data.latency.per_repeat.map((repeat) => repeat.launch)).toEqual([0, 1]);
    expect(data.latency.ttft_ms).toMatchObject({ n: 2, ci95: [expect.any(Number), expect.any(Number)] });
    // Three decode steps per repeat; a sampling after prefill and after each step; two profiled repeats.
    expect(stageOf(profile, 'decode').instances).toBe(6);
    expect(stageOf(profile, 'sampling').instances).toBe(8);
    expect(stageOf(profile, 'decode').breakdown!.instances).toBe(6);
    expect(data.latency.decode_step_by_index_ms).toHaveLength(3);
  });

  test('operators, gaps and remainder sum to the time of each stage', () => expectSums(profile));

  test('in the tables operators and gaps sum to each stage to the nanosecond', () => {
    const { stdout, status } = inferscope(setup, [
      'sql',
      '--session',
      'first',
      '--format',
      'json',
      `SELECT s.stage_id, s.kind, s.end_ns - s.start_ns AS ns,
         (SELECT sum(dur_ns) FROM ops o WHERE o.execution_id = 'profiled' AND o.stage_id = s.stage_id)::BIGINT AS ops,
         (SELECT sum(dur_ns) FROM gaps g WHERE g.execution_id = 'profiled' AND g.stage_id = s.stage_id)::BIGINT AS gaps
       FROM stages s WHERE s.execution_id = 'profiled' AND s.kind IN ('prefill', 'decode')`,
    ]);
    expect(status).toBe(0);
    const { rows } = (JSON.parse(stdout) as { data: { rows: [number, string, number, number, number][] } })
      .data;
    // A warm-up and two timed repeats, each with a prefill and three steps.
    expect(rows).toHaveLength(12);
    for (const [, , ns, ops, gaps] of rows) expect(ops + gaps).toBe(ns);
  });

  test('necessary work equals the count by hand, and utilization is a share of the roofline', () => {
    const prefill = stageOf(profile, 'prefill');
    // Two sequences of 8 tokens: linear layers of 12 288 + 36 864 weights twice, lm_head for one token each; causal attention over 36 keys,
    // 4 · 64 FLOPs per key and layer.
    const flops = 2 * 16 * 2 * 49_152 + 2 * 2 * 32_768 + 4 * 64 * 36 * 2 * 2;
    expect(prefill.flops.value).toBe(flops);
    expect(prefill.mfu.value! / (flops / (prefill.duration_ms.value! / 1e3) / 100e9)).toBeCloseTo(1, 9);
    expect(prefill.bandwidth_level).toBe('L2');
  });

  test('has memory at three points, telemetry and a timeline', () => {
    const { memory, telemetry, timeline } = profile.data;
    const [baseline, warm, peak] = [memory!.baseline_bytes, memory!.post_warmup_bytes, memory!.peak_bytes];
    expect(baseline.value!).toBeGreaterThan(10e6);
    expect(warm.value!).toBeGreaterThan(baseline.value!);
    expect(peak.value!).toBeGreaterThanOrEqual(warm.value!);
    const parts = memory!.breakdown.reduce((sum, row) => sum + row.bytes, 0);
    expect(parts).toBeCloseTo(peak.value!, 3);
    expect(telemetry!.sample_hz.value!).toBeGreaterThanOrEqual(10);
    expect(timeline!.stages.slice(0, 3).map((row) => row.label)).toEqual(['prefill', 'sampling', 'decode 0']);
    expect(timeline!.events.length).toBeGreaterThan(20);
  });

  test('the session is complete, with name and tags; the report is in it and at the requested path', () => {
    expect(listSessions(setup)).toMatchObject([
      { id: profile.data.session.id, name: 'first', status: 'complete' },
    ]);
    expect(unfinishedSessions(setup)).toEqual([]);
    const show = JSON.parse(inferscope(setup, ['session', 'show', 'first', '--json']).stdout);
    expect(show.data.user.tags).toEqual(['a', 'b']);
    const kinds = show.data.manifest.artifacts.map((artifact: { kind: string }) => artifact.kind).sort();
    expect(kinds).toEqual(['ort-trace', 'record', 'record', 'roofline']);
    const reportPath = join(show.data.folder, 'derived', 'report.html');
    for (const path of [reportPath, output]) {
      expect(readFileSync(path, 'utf8')).toContain(profile.data.session.id);
    }
  });

  test('`report` writes the report again from the session', () => {
    const path = join(setup.scratch, 'again.html');
    const { status, stdout } = inferscope(setup, ['report', '--session', 'first', '--output', path]);
    expect([status, stdout]).toEqual([0, `${path}\n`]);
    // The last digits of sums of doubles depend on the order in which DuckDB's threads add.
    const roundedLength = (file: string) =>
      readFileSync(file, 'utf8').replaceAll(/(\d+\.\d{4})\d*/g, '$1').length;
    expect(Math.abs(roundedLength(path) - roundedLength(output))).toBeLessThan(500);
  });

  test('a name that is taken is rejected before anything runs', () => {
    const { why } = expectFailure(
      inferscope(setup, tinyProfileArgs(setup, '--name', 'first', '--json')),
      2,
      'E_SESSION_NAME',
    );
    expect(why).toContain('has this name already');
    expect(listSessions(setup)).toHaveLength(1);
    expect(unfinishedSessions(setup)).toEqual([]);
  });
});

test('the summary of an int4 profile fits 80 columns and ends with the path of the report', () => {
  const { status, stdout, stderr } = inferscope(setup, tinyProfileArgs(setup, '--dtype', 'int4', '--quiet'));
  expect([status, stderr]).toEqual([0, '']);
  expect(stdout).toContain('int4');
  expect(stdout).not.toContain('\u001B[');
  const path = stdout.trimEnd().split(/\s+/).at(-1)!;
  expect(existsSync(path)).toBe(true);
  for (const line of stdout.split('\n'))
    if (!line.includes(setup.home)) expect([...line].length).toBeLessThanOrEqual(80);
});

test('one output token needs only a prefill', () => {
  const profile = profileJson(setup, tinyProfileArgs(setup, '--output-len', '1'));
  expect(profile.data.stages.map((row) => row.kind)).toEqual(['prefill', 'sampling']);
  expect(profile.data.latency.tpot_ms).toMatchObject({ value: null, reason: { code: 'one_token' } });
  expectSums(profile);
  expect(inferscope(setup, ['report']).status).toBe(0);
});

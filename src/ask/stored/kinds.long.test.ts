import { expect, test } from 'vitest';
import { gpuWorkload, planOf } from '../../facts/bench/test-bench.js';
import { analyzeProfile } from '../../facts/profile.js';
import { profileRows } from '../../facts/test-rows.js';
import { repetitions, sessionOf } from '../../facts/test-session.js';
import { benchPoint } from '../../model/bench.js';
import { importSession } from '../../session/archive-import.js';
import { openSession } from '../../session/open.js';
import { testHome } from '../../session/test-folder.js';
import { fixture, imported } from '../../facts/trace/test-import.js';
import { storedAnswer } from './stored-answer.js';

const home = testHome();

test('answers from a profile: utilization, memory, operators', async () => {
  const session = await sessionOf(home, profileRows());
  const { stages, memory } = (await analyzeProfile(session)).data;
  const decode = stages.find(({ kind }) => kind === 'decode')!;
  const mfu = await storedAnswer(session, 'what is the MFU of decode?');
  expect(mfu.answer).toContain(
    `Decode at batch 2: MFU ${Number((100 * decode.mfu.value!).toPrecision(2))} %`,
  );
  expect(mfu.answer).not.toContain('prefill');
  const parts = (await storedAnswer(session, 'what takes the memory?')).answer;
  for (const { component } of memory!.breakdown)
    expect(parts.toLowerCase()).toContain(component.replaceAll('_', ' '));
  // Two calls of 17.5 ms, the longest operator.
  expect((await storedAnswer(session, 'which operators take longest?')).answer).toMatch(
    /\n- \/gemm\/0 \(GEMM\): 35\.0 ms, 63 %, 2 calls/,
  );
  // Per stage, without its warm-up.
  const gemm = await storedAnswer(session, 'how much of it is GEMM?');
  const shares = await session.connect().then(async (database) => {
    const rows = await database.query<{ kind: string; share: number }>(
      `SELECT s.kind, sum(o.dur_ns) FILTER (o.class = 'gemm') / sum(o.dur_ns) AS share FROM ops o
       JOIN stages s ON (s.execution_id, s.stage_id) = (o.execution_id, o.stage_id)
       WHERE NOT s.warmup GROUP BY s.kind`,
    );
    await database.close();
    return rows;
  });
  for (const { kind, share } of shares.filter((row) => row.share > 0))
    expect(gemm.answer).toContain(`${Math.round(100 * share)} % of the operators' time in ${kind}`);
  expect((await storedAnswer(session, 'is the GPU idle between steps?')).answer).toMatch(/^No GPU was used/);
  expect((await storedAnswer(session, 'from which batch size is there no scaling?')).answered_by).toBe(
    'none',
  );
});

test('answers how busy the CPU was from samples of host and processes, not of a GPU', async () => {
  const sample = (t_ns: number, scope: string, metric: string, value: number) => ({
    execution_id: 'e0',
    t_ns,
    scope,
    metric,
    value,
  });
  const telemetry = [0, 1e9].flatMap((t_ns) => [
    sample(t_ns, 'gpu0', 'utilization_percent', 7),
    sample(t_ns, 'cpu0', 'utilization_percent', 90),
    sample(t_ns, 'host', 'utilization_percent', 40),
    sample(t_ns, 'other_processes', 'cores_busy', 1.5),
  ]);
  const session = await sessionOf(home, { telemetry });
  const { answer } = await storedAnswer(session, 'how busy was the CPU?');
  const plain = answer.replaceAll('\u00a0', ' ');
  expect(plain).toMatch(/^The CPU is utilized 40(?:\.0)? % on average over 1\.00 s/);
  expect(plain).toContain('\n- other processes: 1.50 cores on average');
  expect(plain).not.toContain('GPU');
});

test('answers from a benchmark', async () => {
  const point = benchPoint(['latency'], 2, 4, 3);
  const common = {
    samplingMs: [1, 0.5, 0.5],
    loopMs: 0.25,
    inputLen: 4,
    point: point.point,
    pid: 1,
    launch: 0,
  };
  const rows = repetitions([
    { ...common, iteration: 0, startMs: 0, prefillMs: 9, decodeMs: [4, 6] },
    { ...common, iteration: 1, startMs: 100, prefillMs: 11, decodeMs: [4, 6] },
  ]);
  const session = await sessionOf(home, rows, {
    workload: gpuWorkload(),
    roofline: null,
    kind: 'bench',
    artifacts: { 'bench-plan': planOf([point]) },
  });
  const { answer, queries } = await storedAnswer(session, 'what is the latency of the first token?');
  expect(queries.map(({ tool }) => tool)).toContain('bench answer latency');
  // Prefills of 9 and 11 ms, each with 1 ms of sampling.
  expect(answer).toMatch(/\b11(\.\d+)? ms/);
});

test('answers from NCCL Inspector: bandwidth of an operation, the rank that others wait for', async () => {
  const session = await imported(home, 'nccl-inspector', fixture('nccl-inspector-from-docs'));
  const bus = await storedAnswer(session, 'what bus bandwidth has the all-reduce?');
  // 1.5 × 64 MiB in 510 µs.
  expect(bus.answer).toMatch(/AllReduce of 64\.0 MiB on 4 ranks: .*\b197 GB\/s/);
  expect(bus.answer).not.toContain('AllGather');
  for (const question of [
    'which rank is the straggler?',
    'is NCCL communication a problem?',
    'which rank is late?',
  ])
    expect((await storedAnswer(session, question)).answer).toContain('27 of 30');
});

test('idle time of a launch-bound step lists the launches; the rank that others wait for is named', async () => {
  const archived = async (name: string) =>
    openSession((await importSession(fixture(`diagnosis/${name}`), home)).id, home);
  const idle = await storedAnswer(
    await archived('launch_bound_decode-fault.tgz'),
    'is the GPU idle between steps?',
  );
  expect(idle.answer).toMatch(
    /launch call: 1\.81 ms.*\n.*host between launches: 1\.38 ms.*\n.*launch latency: 1\.12 ms/,
  );
  const slow = await storedAnswer(await archived('straggler-fault.tgz'), 'which rank is slow?');
  expect(slow.answer).toMatch(/^Straggler: rank 1 \(GPU 1\)/);
});

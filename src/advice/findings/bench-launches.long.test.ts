import { expect, test } from 'vitest';
import { benchPoint } from '../../model/bench.js';
import type { Workload } from '../../model/manifest.js';
import type { Session } from '../../session/open.js';
import { testHome } from '../../session/test-folder.js';
import { gpuWorkload, planOf } from '../../facts/bench/test-bench.js';
import { explainSession } from '../explain/explain.js';
import { repetitions, sessionOf } from '../../facts/test-session.js';
import { verifySessions } from '../verify/verify.js';
import { whatIf } from '../what-if/what-if.js';
import { benchWaterfalls } from '../../facts/waterfall/bench-waterfalls.js';
import { graphGain } from './bench-launches.js';
import { findingContext } from './findings.js';
import { launchBound } from './rules/launch-bound.js';
import { expectEvidence } from './test-evidence.js';

const home = testHome();

/**
 * TinyLlama's architecture in float16 on an H200, 128 → 64, mode=eager and mode=cudagraph of one suite (docs/tours/gpu.md,
 * Benchmarks on an H200): TPOT and the share of it in which the device was idle, 924 kernels per step.
 */
const recordedSteps = [
  { batch: 1, eager_ms: 9.31, idle: 0.76, graph_ms: 2.95 },
  { batch: 4, eager_ms: 9.43, idle: 0.75, graph_ms: 3.37 },
  { batch: 8, eager_ms: 9.28, idle: 0.73, graph_ms: 3.6 },
  { batch: 16, eager_ms: 9.22, idle: 0.71, graph_ms: 4.19 },
  { batch: 32, eager_ms: 9.4, idle: 0.71, graph_ms: 5.07 },
];
const kernels = 924;
/** Time of sampling and the loop around the calls per step, from bench latency on the same machine ("2 smaller"). */
const outsideCallMs = 0.12;

test.each(recordedSteps)(
  "batch $batch: the gain's interval contains the gain measured with CUDA graphs",
  ({ eager_ms, idle, graph_ms }) => {
    const gain = graphGain(
      {
        step_ms: eager_ms,
        busy_ms: (1 - idle) * eager_ms,
        dispatch_ms: idle * eager_ms - outsideCallMs,
        kernels,
      },
      450,
    );
    const achieved = eager_ms - graph_ms;
    expect(gain.low_ms).toBeLessThan(achieved);
    expect(gain.high_ms).toBeGreaterThan(achieved);
    // By hand: 924 × 0.45 µs of graph nodes remain of the dispatch.
    expect(gain.expected_ms).toBeCloseTo(idle * eager_ms - 0.12 - 0.4158, 9);
  },
);

interface Case {
  step_ms?: number;
  busy_ms?: number;
  kernels?: number | null;
  cores?: number;
  args?: Record<string, string>;
  workload?: Partial<Workload>;
  /** Adds variants and points after the first. */
  withOthers?: boolean;
}

const point = benchPoint(['latency'], 1, 128, 5);
const largerPoint = benchPoint(['latency'], 8, 128, 5);

/** Two timed repeats of the recorded eager step at batch 1, 0.12 ms of it around the engine's call. */
function bench(change: Case = {}): Promise<Session> {
  const { step_ms: step = 9.31, busy_ms: busy = 2.2344, cores = 1, args = {}, workload = {} } = change;
  const kernelCount = change.kernels === undefined ? kernels : change.kernels;
  const repeat = (repeatedPoint: typeof point, iteration: number, execution = 'clean') => ({
    execution,
    point: repeatedPoint.point,
    batch: repeatedPoint.batch_size,
    inputLen: repeatedPoint.input_len,
    pid: 1,
    launch: 0,
    iteration,
    startMs: 1000 + 200 * iteration,
    prefillMs: 10,
    samplingMs: [0.1, 0.06, 0.06, 0.06, 0.06],
    loopMs: 0.06,
    decodeMs: [1, 2, 3, 4].map(() => step - 0.12),
  });
  const moreRepeats = change.withOthers ? [repeat(largerPoint, 2), { ...repeat(point, 3, 'graph') }] : [];
  const times = [0, 1].map((i) => 1000 + 200 * i);
  const graphs = { execution_id: 'graph', label: 'mode=cudagraph', engine_args: { mode: 'cudagraph' } };
  return sessionOf(
    home,
    {
      ...repetitions([repeat(point, 0), repeat(point, 1), ...moreRepeats]),
      telemetry: times.map((timeMs) => ({
        t_ns: (timeMs + 20) * 1e6,
        scope: 'process',
        metric: 'cores_busy',
        value: cores,
      })),
      device_work:
        kernelCount === null
          ? []
          : [
              {
                point: point.point,
                launch: 0,
                kind: 'decode',
                stages: 4,
                kernels: 4 * kernelCount,
                kernel_ns: 4e6 * busy,
                copies: 0,
                copy_ns: 0,
                busy_ns: 4e6 * busy,
                wall_ns: 0,
              },
            ],
    },
    {
      kind: 'bench',
      workload: gpuWorkload(workload),
      roofline: null,
      artifacts: {
        'bench-plan': planOf([point], {
          variants: [
            {
              execution_id: 'clean',
              label: 'mode=eager',
              engine_args: args,
              points: change.withOthers ? [point, largerPoint] : [point],
            },
            ...(change.withOthers ? [{ ...graphs, points: [point] }] : []),
          ],
        }),
      },
    },
  );
}

/** Result of the rule alone. */
async function outcome(change: Case) {
  const session = await bench(change);
  const database = await session.connect();
  try {
    return await launchBound.find(
      await findingContext(session, database, null, await benchWaterfalls(session)),
    );
  } finally {
    await database.close();
  }
}

test('finds a launch-bound decode step from a benchmark alone, with its evidence rows', async () => {
  const session = await bench();
  const { data } = await explainSession(session);
  const [first] = data.findings;
  expect(first).toMatchObject({
    id: 'launch_bound:decode',
    severity: 'high',
    confidence: 'medium',
    hidden_by: null,
    bars: ['host.dispatch'],
    change: { kind: 'flag' },
  });
  expect(first!.title).toBe(
    'Launch-bound: the device waits 75 % of every decode step for the host, which dispatches 924 kernels',
  );
  expect(first!.change.example).toMatch(/^--engine-arg mode=cudagraph {2}# in a program: model\.forward = /);
  // 9.31 − 2.2344 of work − 0.12 around the call − 924 × 0.45 µs.
  expect(first!.gain!.expected_ms).toBeCloseTo(6.5398, 3);
  expect(first!.gain!.low_ms).toBeLessThan(9.31 - 2.95);
  expect(first!.gain!.high_ms).toBeGreaterThan(9.31 - 2.95);
  expect(first!.evidence[0]!.rows).toEqual([
    {
      launch: 0,
      step_ms: expect.closeTo(9.31, 1) as number,
      kernels: 924,
      kernel_ms: 2.2344,
      busy_ms: 2.2344,
      cores_busy: 1,
    },
  ]);
  await expectEvidence(session, data.findings);
  expect(data.sentences.at(-1)).not.toContain('Nothing significant');
  // The what-if gives the same gain.
  const stage = (await whatIf(session, ['cudagraph'])).data.stages.find(({ kind }) => kind === 'decode');
  const saved = stage!.before_ms.value! - stage!.after_ms.value!;
  expect(Math.abs(saved - first!.gain!.expected_ms)).toBeLessThan(0.02 * saved);
});

test('--verify against the recorded graph reports the finding as gone, with an achieved gain inside its interval', async () => {
  const eager = await bench();
  // 12.6 % of the graph's step is idle (docs/tours/gpu.md).
  const graph = await bench({ step_ms: 2.95, busy_ms: 0.874 * 2.95, args: { mode: 'cudagraph' } });
  const { changes } = (await verifySessions(eager, graph)).data;
  expect(changes.find(({ finding }) => finding === 'launch_bound:decode')).toMatchObject({
    outcome: 'gone',
    achieved_ms: expect.closeTo(6.36, 2) as number,
    as_expected: true,
  });
});

test('other points and variants of a session do not change the finding of the first one', async () => {
  const finding = async (change: Case) =>
    (await explainSession(await bench(change))).data.findings.find(({ rule }) => rule === 'launch_bound');
  const [withoutOthers, withOthers] = [await finding({}), await finding({ withOthers: true })];
  expect(withOthers!.hidden_by).toBeNull();
  expect(withOthers!.gain).toEqual(withoutOthers!.gain);
});

const vllm = { engine: { name: 'vllm', version: '0.26.0', options: { gpu: 'NVIDIA H200' } } };
const cpu = {
  engine: { name: 'onnxruntime', version: '1.30.0', options: {} },
  device: 'cpu',
  threads: 2,
};

test.each<[string, Case, 'not_fired' | 'not_applicable', string]>([
  ['mode=cudagraph', { args: { mode: 'cudagraph' } }, 'not_fired', 'replayed as CUDA graphs'],
  ['vLLM', { workload: vllm, kernels: null }, 'not_fired', 'replayed as CUDA graphs'],
  [
    'vLLM without graphs',
    { workload: vllm, args: { enforce_eager: 'true' }, kernels: null },
    'not_applicable',
    'counted no kernels',
  ],
  ['no counted kernels', { kernels: null }, 'not_applicable', 'counted no kernels'],
  // Idle for 8.5 % of the step and dispatching for 3 %: both too little to be launch-bound.
  ['a busy device', { step_ms: 2.442, kernels: 100 }, 'not_fired', 'busy 91'],
  ['few kernels', { kernels: 12 }, 'not_fired', '12 kernels in 75'],
  ['a host that sleeps', { cores: 0 }, 'not_fired', '924 kernels in 0'],
  ['the embedded engine', { workload: cpu }, 'not_applicable', 'no GPU timeline'],
])('%s: no finding, with the reason', async (_name, change, expected, why) => {
  const result = await outcome(change);
  expect(result.outcome).toBe(expected);
  expect(result.outcome === 'fired' ? '' : result.why).toContain(why);
});

test('the change names the option of the engine in use', async () => {
  const change = async (benchCase: Case) => {
    const result = await outcome(benchCase);
    if (result.outcome !== 'fired') throw new Error(result.why);
    return result.findings[0]!.change;
  };
  expect((await change({ args: { attn: 'flash_attention_2' } })).example).toContain(
    '--engine-arg mode=cudagraph --engine-arg attn=sdpa',
  );
  expect(await change({ workload: { tensor_parallel_size: 2 } })).toMatchObject({ kind: 'code' });
  const eager = await change({ workload: vllm, args: { enforce_eager: 'true' } });
  expect(eager.text).toContain('remove --enforce-eager');
});

import { benchPoint, type BenchPart } from '../model/bench.js';
import { document, type Document } from '../model/document.js';
import type {
  BenchDistribution,
  BenchPointResult,
  BenchResult,
  BenchSpread,
  BenchVariant,
} from '../model/documents/bench.js';
import { figure, missing } from '../model/figure.js';
import { sentence } from '../vocabulary/sentence-template.js';
import { random } from './test-operators.js';

const launches = 3;
const repeatsPerLaunch = 5;
const type7 = (sorted: number[], share: number): number => {
  const position = (sorted.length - 1) * share;
  const low = sorted[Math.floor(position)] ?? 0;
  return low + ((sorted[Math.ceil(position)] ?? low) - low) * (position - Math.floor(position));
};

/** A distribution of these values over `launches` of equal size. */
function testSpread(values: number[], unit = 'ms'): BenchSpread {
  const sorted = values.toSorted((a, b) => a - b);
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const sd = Math.sqrt(values.reduce((sum, v) => sum + (v - mean) ** 2, 0) / (values.length - 1));
  const [low, high] = [type7(sorted, 0.25), type7(sorted, 0.75)];
  const reach = 1.5 * (high - low);
  return {
    unit,
    n: values.length,
    launches,
    mean,
    ci95: [mean - 0.9 * sd, mean + 0.9 * sd],
    ci95_over_launches: true,
    sd,
    min: sorted[0]!,
    p50: type7(sorted, 0.5),
    p90: type7(sorted, 0.9),
    p95: type7(sorted, 0.95),
    p99: type7(sorted, 0.99),
    max: sorted.at(-1)!,
    outliers: sorted.filter((value) => value < low - reach || value > high + reach).length,
    source: 'iterations of the clean execution',
  };
}

const noGpu = missing('no_device', 'the engine runs on the CPU: there is no device to time');
const notRun = missing('not_measured', 'out of memory: nothing was timed');

interface Shape {
  parts: BenchPart[];
  batch: number;
  input: number;
  output: number;
}

const shapes: Shape[] = [
  ...[1, 4, 8, 16, 32].map((batch): Shape => ({
    parts: batch === 1 ? ['latency', 'throughput'] : ['throughput'],
    batch,
    input: 128,
    output: 64,
  })),
  ...[10, 50, 200, 1000].map((input): Shape => ({ parts: ['sequence'], batch: 1, input, output: 50 })),
  ...[100, 200].map((output): Shape => ({ parts: ['sequence'], batch: 1, input: 200, output })),
];

/** Decode steps cost the same up to batch 8, then more; prefill is linear with a small quadratic term. */
const tpotOf = (batch: number, slow: number): number => slow * (22 + 0.35 * Math.max(0, batch - 8));
const ttftOf = ({ batch, input }: Shape, slow: number): number =>
  slow * (18 + 0.012 * batch * input + 4e-6 * batch * input * input);

function pointOf(shape: Shape, slow: number, gpu: boolean): BenchPointResult {
  const { parts, batch, input, output } = shape;
  const next = random(batch * 7919 + input * 31 + output);
  const repeats = Array.from({ length: launches * repeatsPerLaunch }, (_, iteration) => {
    const noise = () => (iteration === 7 ? 1.12 : 0.99 + 0.02 * next());
    const ttft_ms = ttftOf(shape, slow) * noise();
    const tpot_ms = tpotOf(batch, slow) * noise();
    return {
      launch: Math.floor(iteration / repeatsPerLaunch),
      iteration,
      ttft_ms,
      tpot_ms,
      e2e_ms: ttft_ms + (output - 1) * tpot_ms,
    };
  });
  const oom = batch === 32 && slow > 1;
  const spread = (timeOf: (repeat: (typeof repeats)[number]) => number): BenchDistribution =>
    oom ? notRun : testSpread(repeats.map(timeOf));
  const [ttft, tpot, e2e] = (['ttft_ms', 'tpot_ms', 'e2e_ms'] as const).map((name) =>
    spread((repeat) => repeat[name]),
  ) as [BenchDistribution, BenchDistribution, BenchDistribution];
  const rate = (tokens: number, latency: BenchDistribution) =>
    'value' in latency
      ? latency
      : figure((tokens / latency.mean) * 1e3, 'tok/s', 'tokens / time', {
          n: latency.n,
          ci95: [(tokens / latency.ci95![1]) * 1e3, (tokens / latency.ci95![0]) * 1e3],
        });
  const device = (value: number, unit: string) =>
    oom ? notRun : gpu ? figure(value, unit, 'device sampler', { n: 40 }) : noGpu;
  const idle = Math.max(0.05, 0.92 - 0.02 * batch) / slow;
  const flags: BenchPointResult['flags'] = oom
    ? []
    : gpu && idle > 0.6
      ? [
          {
            code: 'low_utilization',
            severity: 'warning',
            ...sentence`The GPU does nothing in ${Math.round(idle * 100)} % of a decode step.`,
          },
        ]
      : [{ code: 'good_utilization', severity: 'good', text: 'The device is kept busy.' }];
  return {
    ...benchPoint(parts, batch, input, output),
    outcome: oom ? 'out_of_memory' : 'measured',
    text: oom ? 'CUDA out of memory. Tried to allocate 2.00 GiB' : null,
    warmup: {
      iterations: oom ? notRun : figure(3, 'iterations', 'points, mean over launches'),
      stable: oom ? null : true,
    },
    interleaved: true,
    latency: {
      ttft_ms: ttft,
      tpot_ms: tpot,
      itl_ms: spread((repeat) => repeat.tpot_ms * (0.995 + 0.01 * next())),
      e2e_ms: e2e,
      prefill_device_ms: gpu ? spread((repeat) => repeat.ttft_ms * 0.93) : noGpu,
      decode_device_ms: gpu ? spread((repeat) => repeat.tpot_ms * 0.97) : noGpu,
    },
    throughput: {
      output_tokens_per_s: rate(batch * output, e2e),
      total_tokens_per_s: rate(batch * (input + output), e2e),
      decode_tokens_per_s: rate(batch, tpot),
      prefill_tokens_per_s: rate(batch * input, ttft),
      requests_per_s: oom
        ? notRun
        : figure((batch / (e2e as BenchSpread).mean) * 1e3, 'req/s', 'batch / e2e'),
    },
    device_work: {
      prefill_kernel_ms: device(9.1, 'ms'),
      decode_kernel_ms: device(tpotOf(batch, slow) * (1 - idle), 'ms'),
      decode_kernels: device(924, 'kernels'),
      prefill_idle_share: device(0.4, 'share'),
      decode_idle_share: device(idle, 'share'),
    },
    machine: {
      gpu_utilization_percent: device(100 * (1 - idle * 0.9), '%'),
      gpu_memory_used_bytes: device(2.4 * 2 ** 30 + batch * 30 * 2 ** 20, 'B'),
      memory_bytes: oom
        ? notRun
        : figure(2.2 * 2 ** 30 + batch * 24 * 2 ** 20, 'B', 'torch.cuda.max_memory_allocated'),
      power_w: device(180 + 6 * batch, 'W'),
      sm_clock_mhz: device(1980, 'MHz'),
      cpu_cores_busy: oom ? notRun : figure(1.02, 'cores', 'host sampler', { n: 40 }),
      joules_per_output_token: device((0.2 * 22) / batch, 'J'),
      kv_cache_usage: missing('not_reported', 'the engine does not say how full its KV cache is'),
    },
    model_utilization: {
      prefill_mfu: device(Math.min(0.45, 0.02 * batch), 'share'),
      prefill_mbu: device(0.1, 'share'),
      decode_mfu: device(0.001 * batch, 'share'),
      decode_mbu: device(0.023, 'share'),
      prefill_bound: gpu && !oom ? 'compute' : null,
      decode_bound: gpu && !oom ? 'memory' : null,
    },
    expected: {
      ttft: missing('no_roofline', 'no roofline is known for prefill of this size'),
      tpot:
        gpu && !oom ? { unit: 'ms', low: 0.51, high: 1.6, explanation: 'weights / bandwidth, × 3' } : noGpu,
    },
    flags,
    ...(oom ? {} : { repeats }),
  };
}

function variantOf(
  execution: string,
  args: Record<string, string>,
  slow: number,
  gpu: boolean,
): BenchVariant {
  const points = shapes.map((shape) => pointOf(shape, slow, gpu));
  const label = Object.entries(args).map(([key, value]) => `${key}=${value}`);
  const fitted = (
    id: 'prompt' | 'output',
    x: string,
    y: string,
    coefficients: number[],
    pointShapes: Shape[],
  ) => ({
    id,
    x,
    y,
    unit: 'ms',
    coefficients,
    n: pointShapes.length,
    r2: 0.9991,
    rms_error: 0.013,
    points: pointShapes.map((shape) => {
      const size = id === 'prompt' ? shape.input : shape.output;
      const { latency } = points[shapes.indexOf(shape)]!;
      const { mean } = (id === 'prompt' ? latency.ttft_ms : latency.e2e_ms) as BenchSpread;
      return { x: size, measured: mean, fitted: coefficients.reduce((sum, c, i) => sum + c * size ** i, 0) };
    }),
  });
  const sequences = shapes.filter(({ parts }) => parts.includes('sequence'));
  return {
    execution_id: execution,
    label: label.join(', ') || 'defaults',
    engine_args: args,
    launches,
    points,
    fits: [
      fitted(
        'prompt',
        'prompt tokens',
        'TTFT',
        [18 * slow, 0.012 * slow, 4e-6 * slow],
        sequences.filter(({ output }) => output === 50),
      ),
      fitted(
        'output',
        'output tokens',
        'end to end',
        [(20.6 - 22) * slow, 22 * slow],
        sequences.filter(({ input }) => input === 200),
      ),
    ],
    answers: [
      {
        id: 'latency',
        question: 'How fast is one request?',
        answer: `At batch 1, 128 in + 64 out, the first token comes after ${(19.6 * slow).toFixed(1)} ms and each further one after ${(22 * slow).toFixed(1)} ms.`,
        figures: { ttft_ms: figure(19.6 * slow, 'ms', 'test'), tpot_ms: figure(22 * slow, 'ms', 'test') },
      },
      {
        id: 'batch_knee',
        question: 'From which batch does a larger one cost latency?',
        answer: 'Up to batch 8 a decode step costs the same; beyond it every further sequence adds 0.35 ms.',
        figures: { knee_batch: figure(8, 'sequences', 'points') },
      },
      {
        id: 'scaling',
        question: 'Does throughput scale with the batch?',
        answer: 'Batch 32 gives 22 times the tokens of batch 1: 69 % of 32.',
        figures: { scaling_efficiency: figure(0.69, 'share', 'points') },
      },
      {
        id: 'idle',
        question: 'Does the device wait?',
        answer: gpu
          ? 'The GPU does nothing in 90 % of a decode step at batch 1.'
          : 'Not known: there is no device.',
        figures: { decode_idle_share: gpu ? figure(0.9, 'share', 'device work') : noGpu },
      },
      {
        id: 'prompt_cost',
        question: 'What does twice the prompt cost?',
        answer: 'From 200 to 400 prompt tokens TTFT grows by 2.9 ms; the fit is error 1.3 %.',
        figures: {},
      },
    ],
    flags: [],
  };
}

/**
 * A benchmark document as `inferscope bench suite` writes it, for view tests: two variants, the slower of which does not fit batch 32. With
 * `gpu` false it has no device figures.
 */
export function testBench({ gpu = true, variants = 2 } = {}): Document<BenchResult> {
  const all = [
    variantOf('bench-01', { mode: 'cudagraph' }, 1, gpu),
    variantOf('bench-02', { mode: 'eager' }, 1.6, gpu),
  ].slice(0, variants);
  const wave = (scale: number, add: number): [number, number][] =>
    Array.from({ length: 120 }, (_, i) => [i * 500, add + scale * Math.abs(Math.sin(i / 7))]);
  return document(
    'bench',
    '1.0',
    {
      session: {
        id: '20261121-0830-tinyllama',
        name: 'tinyllama-suite',
        title: 'TinyLlama-1.1B bfloat16 · transformers cuda · suite',
        started_at: '2026-11-21T08:30:00.000Z',
        status: 'complete',
      },
      parts: ['latency', 'throughput', 'sequence'],
      engine: {
        name: 'transformers',
        version: '4.57.1',
        model: 'TinyLlama-1.1B',
        dtype: 'bfloat16',
        quantization: null,
        weights: 'random',
        device: gpu ? 'cuda:0' : 'cpu',
        device_name: gpu ? 'NVIDIA H200' : null,
        tensor_parallel_size: 1,
        threads: gpu ? null : 2,
      },
      protocol: {
        launches,
        repeats: repeatsPerLaunch,
        seed: 0,
        sampling: 'greedy, no end token',
        warmup: 'until two repeats are within 5 %, at most 10',
      },
      variants: all,
      answers:
        variants < 2
          ? []
          : [
              {
                id: 'variants',
                question: 'Which configuration is faster?',
                answer: 'mode=cudagraph is 1.6 times as fast per token as mode=eager at every batch.',
                figures: { tpot_ratio: figure(1.6, 'times', 'test', { ci95: [1.55, 1.66] }) },
              },
            ],
      not_measured: gpu
        ? [
            {
              figure: 'kv_occupancy',
              code: 'not_reported',
              text: 'the engine does not say how full its KV cache is',
            },
          ]
        : [{ figure: 'device_time', code: 'no_device', text: 'the engine runs on the CPU' }],
      telemetry: [
        { scope: 'host', metric: 'utilization_percent', unit: '%', points: wave(30, 20) },
        ...(gpu
          ? [
              { scope: 'gpu0', metric: 'utilization_percent', unit: '%', points: wave(60, 10) },
              { scope: 'gpu0', metric: 'power_w', unit: 'W', points: wave(200, 150) },
            ]
          : []),
      ],
      environment: [
        { id: 'cpu_model', label: 'cpu model', value: 'Intel Xeon Platinum 8481C' },
        { id: 'os', label: 'os', value: 'Linux 6.8' },
        { id: 'l3_bytes', label: 'l3 bytes', value: '110100480' },
      ],
    },
    [
      {
        code: 'machine_not_idle',
        severity: 'warning',
        text: 'Other processes used 1.2 cores while it was measured.',
      },
    ],
  );
}

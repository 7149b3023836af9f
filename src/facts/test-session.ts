import type { MachineRoofline } from '../model/documents/roofline.js';
import type { Workload } from '../model/manifest.js';
import type { Row } from '../model/tables.js';
import type { SessionSummary } from '../session/create.js';
import type { Home } from '../session/home.js';
import type { Session } from '../session/open.js';
import { type Rows, sessionOfRows, summary } from '../session/test-session.js';

export const mebibyte = 2 ** 20;

/** A Llama small enough to count by hand. */
export const tinyConfig = {
  architectures: ['LlamaForCausalLM'],
  model_type: 'llama',
  hidden_size: 64,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  head_dim: 16,
  intermediate_size: 192,
  vocab_size: 512,
  max_position_embeddings: 256,
  rms_norm_eps: 1e-5,
  rope_theta: 10000,
  tie_word_embeddings: true,
  hidden_act: 'silu',
};

export function tinyWorkload(change: Partial<Workload> = {}): Workload {
  return {
    model: {
      name: 'tiny',
      config: tinyConfig,
      dtype: 'float32',
      quantization: null,
      weights: 'random',
      num_parameters: 131_392,
      weight_bytes: 525_568,
    },
    engine: { name: 'onnxruntime', version: '1.30.0', options: {} },
    device: 'cpu',
    threads: 1,
    batch_size: 2,
    input_len: 4,
    output_len: 3,
    tensor_parallel_size: 1,
    ...change,
  };
}

/** Round figures: 100 GFLOP/s float32, 400 int8, four working sets, a last-level cache of 32 MiB. */
export function exampleRoofline(): MachineRoofline {
  const point = (mib: number, gigabytes: number, level: string) => ({
    working_set_bytes: mib * mebibyte,
    bytes_per_s: gigabytes * 1e9,
    reached_by: 'ReduceMax',
    level,
    runs: 10,
    sd_share: 0.01,
  });
  const peak = (dtype: string, flops_per_s: number) => ({
    dtype,
    flops_per_s,
    reached_by: 'MatMul',
    runs: 10,
    sd_share: 0.01,
  });
  return {
    engine: 'onnxruntime 1.30.0 CPU',
    cpu_model: 'test CPU',
    threads: 1,
    measured_at: '2026-11-20T22:14:00.000Z',
    seconds: 8,
    other_processes_cores: 0,
    compute: [peak('float32', 100e9), peak('int8', 400e9)],
    bandwidth: [point(1, 100, 'L2'), point(4, 40, 'L3'), point(16, 20, 'L3'), point(64, 10, 'DRAM')],
    weight_streams: [],
    last_level_cache_bytes: 32 * mebibyte,
    ridge_flop_per_byte: 10,
  };
}

export type { Rows };

/** Captures of the summary, and those that rows of operators name. */
function capturesOf({ ops = [] }: Rows): SessionSummary['captures'] {
  const [first] = summary.captures;
  const captureById = new Map(
    ops.flatMap(({ execution_id, capture_id }) =>
      execution_id && capture_id ? [[capture_id, { ...first!, execution_id, capture_id }]] : [],
    ),
  );
  return [...summary.captures, ...captureById.values()];
}

/** Saves a session with these rows and opens it. */
export function sessionOf(
  home: Home,
  rows: Rows,
  options: {
    workload?: Workload | null;
    roofline?: MachineRoofline | null;
    kind?: string;
    /** JSON artifacts by kind. */
    artifacts?: Record<string, unknown>;
    manifest?: Partial<SessionSummary>;
  } = {},
): Promise<Session> {
  const {
    workload = tinyWorkload(),
    roofline = exampleRoofline(),
    kind = 'profile',
    artifacts = {},
  } = options;
  const keys = { execution_id: 'clean', capture_id: 'c0', host: 'h', rank: 0 };
  return sessionOfRows(home, rows, () => keys, {
    kind,
    artifacts: { ...(roofline ? { roofline } : {}), ...artifacts },
    manifest: { captures: capturesOf(rows), ...options.manifest, workload },
  });
}

export interface Repetition {
  /** Default: clean. */
  execution?: string;
  /** Point of a benchmark. */
  point?: string;
  pid: number;
  launch: number;
  iteration: number;
  warmup?: boolean;
  /** Start in session time, ms. */
  startMs: number;
  prefillMs: number;
  /** Sampling of the first token, then after each decode step. */
  samplingMs: number[];
  decodeMs: number[];
  /** Host time before each decode call, and after the last step. */
  loopMs: number;
  batch?: number;
  inputLen?: number;
}

const nsPerMs = 1e6;

/** Rows of one repeat in the form of the recording protocol: prefill, sampling, then decode and sampling per step. */
function repetition(r: Repetition, firstStage: number): Required<Pick<Rows, 'stages' | 'iterations'>> {
  const { batch = 2, inputLen = 4, warmup = false } = r;
  const keys = {
    execution_id: r.execution ?? 'clean',
    capture_id: `${r.execution ?? 'clean'}-record`,
    pid: r.pid,
    iteration: r.iteration,
  };
  const stages: Row<'stages'>[] = [];
  let now = r.startMs;
  const stage = (kind: string, ms: number, step: number | null, context: number) => {
    const id = firstStage + stages.length;
    stages.push({
      ...keys,
      tid: r.pid,
      stage_id: id,
      phase_id: id,
      kind,
      step_index: step,
      start_ns: now * nsPerMs,
      end_ns: (now + ms) * nsPerMs,
      batch_size: batch,
      context_tokens_sum: context,
      warmup,
    });
    now += ms;
  };
  stage('prefill', r.prefillMs, null, batch * inputLen);
  stage('sampling', r.samplingMs[0]!, null, 0);
  const firstToken = now;
  for (const [step, ms] of r.decodeMs.entries()) {
    now += r.loopMs;
    stage('decode', ms, step, batch * (inputLen + step + 1));
    stage('sampling', r.samplingMs[step + 1]!, step, 0);
  }
  const end = now + r.loopMs;
  const steps = r.decodeMs.length;
  const iteration: Row<'iterations'> = {
    ...keys,
    launch: r.launch,
    ...(r.point === undefined ? {} : { point: r.point }),
    warmup,
    batch_size: batch,
    input_len: inputLen,
    output_len: steps + 1,
    start_ns: r.startMs * nsPerMs,
    end_ns: end * nsPerMs,
    ttft_ns: (firstToken - r.startMs) * nsPerMs,
    tpot_ns: steps > 0 ? ((end - firstToken) * nsPerMs) / steps : null,
  };
  return { stages, iterations: [iteration] };
}

/** Several repeats with consecutive stage ids. */
export function repetitions(repeats: Repetition[]): Rows {
  const rows = { stages: [] as Row<'stages'>[], iterations: [] as Row<'iterations'>[] };
  for (const repeat of repeats) {
    const made = repetition(repeat, rows.stages.length);
    rows.stages.push(...made.stages);
    rows.iterations.push(...made.iterations);
  }
  return rows;
}

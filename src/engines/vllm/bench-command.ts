import { readFile, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import process from 'node:process';
import { execa } from 'execa';
import type { BenchOrder, BenchPoint, PointOutcome } from '../../model/bench.js';
import { endWithParent } from '../../model/end-with-parent.js';
import type { EngineLaunch, LaunchControl, PreparedEngine } from '../../model/engine.js';
import { messageOf } from '../../model/errors.js';
import { noTelemetry } from '../../model/no-telemetry.js';
import { appendRecord, type RecordBody } from '../record-lines.js';
import { rootCause, isOutOfMemory } from './root-cause.js';
import type { RecordLineInput } from '../../model/record.js';
import { monotonicNs, realtimeNs } from '../../model/clock.js';
import { plural } from '../../vocabulary/format.js';
import { exitText } from '../../vocabulary/process-exit.js';

type RequestLineInput = Extract<RecordLineInput, { type: 'request' }>;

export const benchVerbs = { bench: 'latency', 'bench-throughput': 'throughput' } as const;
export type BenchVerb = (typeof benchVerbs)[keyof typeof benchVerbs];

interface BenchTarget {
  python: string;
  /** inferscope_vllm_command.py, which starts vLLM's command. */
  command: string;
  version: string;
  verb: BenchVerb;
  /** Name for the record. */
  name: string;
  weights: 'random' | 'trained';
  /** The known part of config.json; vLLM's own command reports none. */
  config: Record<string, unknown> | null;
  /** Tokenizer for the prompts of `throughput`; null: the model's own. */
  tokenizer: string | null;
  /** cuda or cpu. */
  device: string;
  place: (scratch: string) => string;
  /** Arguments of Python itself. */
  interpreterArgs?: readonly string[];
}

/**
 * Arguments of `vllm bench latency` or `throughput` for one point. Latency runs the batch as one, after warm-up, once
 * per repeat; throughput runs its prompts once without warm-up, at most one batch at a time.
 */
export function benchArguments(
  verb: BenchVerb,
  { batch_size, input_len, output_len }: BenchPoint,
  order: Pick<BenchOrder, 'repeats' | 'warmup' | 'dtype' | 'seed' | 'engine_args'>,
  model: { model: string; weights: 'random' | 'trained'; tokenizer: string | null; output: string },
): string[] {
  const flags: Record<string, string | number> = {
    model: model.model,
    seed: order.seed,
    'input-len': input_len,
    'output-len': output_len,
    ...(verb === 'latency'
      ? { 'batch-size': batch_size, 'num-iters': order.repeats, 'num-iters-warmup': order.warmup.max }
      : { 'dataset-name': 'random', 'num-prompts': batch_size, 'max-num-seqs': batch_size }),
    ...(model.weights === 'random' ? { 'load-format': 'dummy' } : {}),
    // Only the random prompts of throughput need a tokenizer.
    ...(verb === 'latency' ? { 'disable-detokenize': 'true', 'skip-tokenizer-init': 'true' } : {}),
    ...(verb === 'throughput' && model.tokenizer !== null ? { tokenizer: model.tokenizer } : {}),
    ...(order.dtype === null ? {} : { dtype: order.dtype }),
    ...order.engine_args,
    'output-json': model.output,
  };
  return ['bench', verb, ...Object.entries(flags).flatMap(([key, value]) => flag(key, String(value)))];
}

/**
 * Sampling of both verbs, for all options: SamplingParams(temperature=1.0, top_p=1.0, ignore_eos=True) in
 * vllm/benchmarks/latency.py and throughput.py, seen in 0.32.0; only latency has an alternative.
 */
export function benchSampling(verb: BenchVerb, args: Readonly<Record<string, string>>): string {
  const beams = args['use-beam-search'] ?? args['use_beam_search'];
  const how =
    verb === 'latency' && /^true$/i.test(beams ?? '')
      ? `beam search of width ${args['n'] ?? 1}`
      : 'random sampling at temperature 1';
  return `${how} (vLLM's own), no end token: every sequence gets its full length`;
}

/**
 * The part of the protocol that each verb follows: throughput has no number of repeats, and neither checks its warm-up.
 */
export function benchProtocol(verb: BenchVerb): Pick<PreparedEngine, 'repeats' | 'warmup'> {
  return verb === 'throughput'
    ? { repeats: 1, warmup: () => 'none: vllm bench throughput runs its prompts once' }
    : {
        warmup: (max) => `each point, ${max} batches of vllm bench latency's own, whether they settle or not`,
      };
}

/** `enforce_eager=true` is a flag without a value, `=false` its negation. */
function flag(key: string, value: string): string[] {
  const name = key.replaceAll('_', '-');
  if (/^true$/i.test(value)) return [`--${name}`];
  if (/^false$/i.test(value)) return [`--no-${name}`];
  return [`--${name}`, value];
}

/**
 * Seconds per batch, from the file of either verb.
 * @throws if it has none
 */
export function batchSeconds(text: string): number[] {
  const { latencies, elapsed_time } = JSON.parse(text) as { latencies?: unknown; elapsed_time?: unknown };
  const values = Array.isArray(latencies) ? latencies : [elapsed_time];
  const seconds = values.filter((value): value is number => typeof value === 'number' && value > 0);
  if (seconds.length > 0 && seconds.length === values.length) return seconds;
  throw new Error('its JSON holds neither "latencies" nor "elapsed_time"');
}

/**
 * Why the lengths differ from the requested ones: the random prompts of throughput are text that is tokenized again, so
 * they may be longer or shorter. Null if they do not.
 */
export function otherShape(text: string, { batch_size, input_len, output_len }: BenchPoint): string | null {
  const { total_num_tokens: tokens } = JSON.parse(text) as { total_num_tokens?: unknown };
  const requested = batch_size * (input_len + output_len);
  if (typeof tokens !== 'number' || Math.abs(tokens - requested) <= 0.01 * requested) return null;
  return `vllm bench throughput ran ${plural(tokens, 'token')}, not the ${requested} requested: its prompts do not keep their length through this tokenizer`;
}

/** Asks the command to stop when the benchmark is stopped, and kills all its processes if it does not. */
function stopWith(pid: number | undefined, signal: AbortSignal): () => void {
  let kill: NodeJS.Timeout | undefined;
  const send = (to: number, name: NodeJS.Signals) => {
    try {
      process.kill(to, name);
    } catch {
      // The process has exited.
    }
  };
  const stop = () => {
    if (pid === undefined) return;
    send(pid, 'SIGINT');
    kill = setTimeout(() => send(-pid, 'SIGKILL'), 30_000);
  };
  if (signal.aborted) stop();
  else signal.addEventListener('abort', stop, { once: true });
  return () => {
    clearTimeout(kill);
    signal.removeEventListener('abort', stop);
    if (pid !== undefined && signal.aborted) send(-pid, 'SIGKILL');
  };
}

/**
 * One launch: the command once per point, because it measures one shape per process. Its JSON stays in `scratch` as
 * `vllm-bench-<point>-<launch>.json`.
 */
export function launchBench(target: BenchTarget, order: BenchOrder, control: LaunchControl): EngineLaunch {
  let pid: number | null = null;
  let iteration = order.first_iteration;
  const log: string[] = [];
  const write = (...lines: RecordBody[]) => appendRecord(control.recordPath, order.execution_id, lines);
  return {
    get pid() {
      return pid;
    },
    ended: run().then(
      () => ({ failure: null, log: log.join('\n') || null }),
      (failure: unknown) => ({ failure, log: log.join('\n') || null }),
    ),
  };

  async function run(): Promise<void> {
    const model = target.place(control.scratch);
    write(clockLine(), modelLine(target, order));
    control.onProgress({ type: 'phase', phase: 'timed' });
    for (const point of order.points) {
      if (control.signal.aborted) end(point, 'stopped', 'stopped by the user');
      else await measure(point, model);
    }
    write(clockLine());
  }

  async function measure(point: BenchPoint, model: string): Promise<void> {
    const output = join(control.scratch, `vllm-bench-${point.point}-${order.launch}.json`);
    const { verb, weights, tokenizer } = target;
    const args = benchArguments(verb, point, order, { model, weights, tokenizer, output });
    const child = endWithParent((mark) =>
      execa(target.python, [...(target.interpreterArgs ?? []), '-B', target.command, ...args], {
        stdin: 'ignore',
        env: { ...noTelemetry, ...mark },
        all: true,
        reject: false,
        maxBuffer: 1 << 20,
        // A separate process group: the engine core outlives a killed front end, and keeps the log's pipe open.
        detached: true,
      }),
    );
    pid = child.pid ?? null;
    const removeStop = stopWith(child.pid, control.signal);
    const exit = await child;
    removeStop();
    log.push(`$ vllm ${args.join(' ')}`, String(exit.all ?? ''));
    if (exit.failed) {
      const commandOutput = String(exit.all ?? '');
      const cause = rootCause(commandOutput);
      const words = cause
        ? `${cause.name}: ${cause.text}`
        : commandOutput.trim().split('\n').at(-1) ||
          `it ${exitText(exit.signal, exit.exitCode)} without output`;
      const memory = /out of memory|OutOfMemory/i.test(commandOutput) || isOutOfMemory(words);
      if (control.signal.aborted) end(point, 'stopped', 'stopped by the user');
      else
        end(
          point,
          memory ? 'out_of_memory' : 'failed',
          `vllm bench ${target.verb} failed: ${words}`.slice(0, 500),
        );
      return;
    }
    try {
      const text = await readFile(output, 'utf8');
      // The session keeps vLLM's own file in its log.
      log.push(`${basename(output)}:`, text.trim());
      const seconds = batchSeconds(text);
      const shapeNote = otherShape(text, point);
      if (shapeNote !== null) {
        end(point, 'failed', shapeNote);
        return;
      }
      const { mtimeMs } = await stat(output);
      const end_ns = monotonicNs() - Math.max(0, Date.now() - mtimeMs) * 1e6;
      write(...requestLines(point, order, iteration, seconds, end_ns));
      for (const value of seconds) {
        control.onProgress({
          type: 'iteration',
          point: point.point,
          iteration,
          warmup: false,
          e2e_ms: value * 1000,
        });
        iteration++;
      }
      end(point, 'measured', null);
    } catch (error) {
      end(point, 'failed', `${output} cannot be read: ${messageOf(error)}`);
    }
  }

  function end({ point }: BenchPoint, outcome: PointOutcome, text: string | null): void {
    const warmupIterations = outcome === 'measured' && target.verb === 'latency' ? order.warmup.max : 0;
    write({
      type: 'point',
      t_ns: monotonicNs(),
      point,
      launch: order.launch,
      outcome,
      text,
      warmup_iterations: warmupIterations,
      stable: null,
      interleaved: false,
    });
    control.onProgress({ type: 'point', point, outcome, text });
  }
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);

function clockLine(): RecordBody {
  return { type: 'clock', t_ns: monotonicNs(), realtime_ns: realtimeNs() };
}

function modelLine(
  { name, weights, config, version, device }: BenchTarget,
  { dtype, engine_args }: BenchOrder,
): RecordBody {
  return {
    type: 'model',
    t_ns: monotonicNs(),
    name,
    config: config ?? {},
    dtype: dtype ?? 'auto',
    quantization: engine_args['quantization'] ?? null,
    weights,
    weight_bytes: null,
    tensor_parallel_size: Number(engine_args['tensor_parallel_size'] ?? 1),
    engine: { name: 'vllm', version },
    device,
  };
}

/**
 * The file has the duration of each batch but not its start. Batches ran one after the other until the file was
 * written.
 */
export function requestLines(
  { point, batch_size, input_len, output_len }: BenchPoint,
  { launch }: Pick<BenchOrder, 'launch'>,
  firstIteration: number,
  seconds: readonly number[],
  endNs: number,
): RecordBody<RequestLineInput>[] {
  let phaseNs = endNs - sum(seconds) * 1e9;
  return seconds.map((value, index) => {
    const t_ns = Math.round(phaseNs);
    phaseNs += value * 1e9;
    return {
      type: 'request',
      t_ns,
      iteration: firstIteration + index,
      launch,
      warmup: false,
      batch_size,
      input_len,
      output_len,
      first_token_ns: null,
      end_ns: Math.round(phaseNs),
      point,
    };
  });
}

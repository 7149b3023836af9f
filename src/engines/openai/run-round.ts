import type { BenchOrder, BenchPoint, PointOutcome } from '../../model/bench.js';
import type { LaunchControl } from '../../model/engine.js';
import { monotonicNs, realtimeNs } from '../../model/clock.js';
import type { PromptTokenizer } from '../../load/prompts.js';
import { partSeed } from '../../load/random.js';
import { seededRandom } from '../../model/random.js';
import { startServerSampler } from '../../load/server-sampler.js';
import type { LoadTarget } from '../../load/target.js';
import { appendRecord, type RecordBody } from '../record-lines.js';
import { type Batch, measureBatch } from './measure-batch.js';
import { plural } from '../../vocabulary/format.js';

export interface ServerFacts {
  target: LoadTarget;
  tokenizer: PromptTokenizer | undefined;
  /** The server's name for itself: vLLM, SGLang, …; openai-compatible if unknown. */
  server: string;
  /** Its Prometheus page; null without one. */
  metricsUrl: string | null;
}

/** The state of a point in this round. */
interface PointState {
  point: BenchPoint;
  outcome: PointOutcome;
  text: string | null;
  warmups: number;
  stable: boolean | null;
  notes: Set<string>;
  timedRepeats: number;
  /** Reasons why the client was late in timed repeats, one per repeat. */
  clientBound: string[];
}

const metricsPeriodMs = 1000;

/**
 * One round over all points of an order: warm-up of each, then their timed repeats in turn. Writes the lines of the
 * recording protocol like an engine's process.
 * @returns events, one line each
 */
export async function runRound(
  facts: ServerFacts,
  order: BenchOrder,
  { recordPath, signal, onProgress }: LaunchControl,
): Promise<string> {
  const log: string[] = [];
  const record = (...lines: RecordBody[]) => appendRecord(recordPath, order.execution_id, lines);
  // A server may still have prompts of an earlier run with the same seed in its prefix cache.
  const random = seededRandom(partSeed(order.seed, `${order.execution_id} ${order.launch} ${Date.now()}`));
  let iteration = order.first_iteration;
  record(clockLine());
  const sampler = facts.metricsUrl === null ? null : startServerSampler(facts.metricsUrl, metricsPeriodMs);
  const states = order.points.map((point): PointState => ({
    point,
    outcome: 'measured',
    text: null,
    warmups: 0,
    stable: null,
    notes: new Set(),
    timedRepeats: 0,
    clientBound: [],
  }));

  async function repeat(state: PointState, warmup: boolean): Promise<number | null> {
    const { point } = state;
    const result = await measureBatch(facts.target, point, random, facts.tokenizer, signal);
    if (!('batch' in result)) {
      [state.outcome, state.text] = [result.outcome, result.text];
      log.push(`${point.point}: ${result.outcome}: ${result.text}`);
      return null;
    }
    const { batch } = result;
    for (const note of notesOf(batch, point)) state.notes.add(note);
    if (!warmup) {
      state.timedRepeats++;
      if (batch.client.bound) state.clientBound.push(batch.client.reasons.join(', '));
    }
    record(requestLine(batch, point, { iteration, launch: order.launch, warmup }));
    const e2e_ms = (batch.end_ns - batch.begin_ns) / 1e6;
    onProgress({ type: 'iteration', point: point.point, iteration, warmup, e2e_ms });
    iteration++;
    return e2e_ms;
  }

  onProgress({ type: 'phase', phase: 'warmup' });
  for (const state of states) await warmUp(state, order, (point) => repeat(point, true));
  onProgress({ type: 'phase', phase: 'timed' });
  for (let round = 0; round < order.repeats; round++) {
    for (const state of states) if (state.outcome === 'measured') await repeat(state, false);
  }
  for (const state of states) {
    const { point, outcome, text, warmups, stable, notes, timedRepeats, clientBound } = state;
    if (clientBound.length > 0)
      notes.add(`client-bound in ${clientBound.length} of ${timedRepeats} repeats: ${clientBound[0]}`);
    const texts = [...(text === null ? [] : [text]), ...notes];
    const joinedText = texts.length === 0 ? null : texts.join('; ');
    record({
      type: 'point',
      t_ns: monotonicNs(),
      point: point.point,
      launch: order.launch,
      outcome,
      text: joinedText,
      warmup_iterations: warmups,
      stable,
      interleaved: true,
    });
    onProgress({ type: 'point', point: point.point, outcome, text: joinedText });
    if (notes.size > 0) log.push(`${point.point}: ${[...notes].join('; ')}`);
  }
  if (sampler) record(...telemetryLines(await sampler.stop()));
  record(clockLine());
  return log.join('\n');
}

/** Warms up until two consecutive repeats agree within the bound, or the maximum number is reached. */
async function warmUp(
  state: PointState,
  { warmup: { min, max, within } }: BenchOrder,
  repeat: (state: PointState) => Promise<number | null>,
): Promise<void> {
  let previous: number | null = null;
  state.stable = false;
  while (state.warmups < max && !(state.stable && state.warmups >= min)) {
    const current = await repeat(state);
    if (current === null) return;
    state.warmups++;
    state.stable = previous !== null && Math.abs(current - previous) <= within * Math.min(current, previous);
    previous = current;
  }
}

/** Differences between a batch and the requested point. */
export function notesOf(
  batch: Pick<Batch, 'input_tokens' | 'cached_tokens'>,
  { input_len }: BenchPoint,
): string[] {
  const notes: string[] = [];
  if (batch.input_tokens !== null && batch.input_tokens !== input_len)
    notes.push(
      `prompts had ${plural(batch.input_tokens, 'token')} by the server's count, not ${input_len}: --engine-arg tokenizer=PATH makes them exact`,
    );
  if ((batch.cached_tokens ?? 0) > 0)
    notes.push(
      `the server took ${plural(batch.cached_tokens!, 'prompt token')} of a batch from its prefix cache`,
    );
  return notes;
}

function clockLine(): RecordBody {
  return { type: 'clock', t_ns: monotonicNs(), realtime_ns: realtimeNs() };
}

function requestLine(
  batch: Batch,
  { point, batch_size, input_len, output_len }: BenchPoint,
  position: { iteration: number; launch: number; warmup: boolean },
): RecordBody {
  return {
    type: 'request',
    ...position,
    t_ns: batch.begin_ns,
    batch_size,
    input_len: batch.input_tokens ?? input_len,
    output_len,
    first_token_ns: batch.first_token_ns,
    end_ns: batch.end_ns,
    tpot_ns: batch.tpot_ns,
    point,
  };
}

function telemetryLines(readings: { t_ns: number; reading: Record<string, number> }[]): RecordBody[] {
  return readings.flatMap(({ t_ns, reading }) =>
    Object.entries(reading).map(([metric, value]) => ({
      type: 'telemetry' as const,
      t_ns,
      scope: 'server',
      metric,
      value,
    })),
  );
}

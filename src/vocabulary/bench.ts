import type { BenchAnswer, BenchFit, BenchPointResult } from '../model/documents/bench.js';
import { latencyLabels } from './loads.js';

/** Latencies of a point, in display order. */
export const pointLatencyLabels: Readonly<Record<keyof BenchPointResult['latency'], string>> = {
  ttft_ms: latencyLabels.ttft,
  tpot_ms: latencyLabels.tpot,
  itl_ms: latencyLabels.itl,
  e2e_ms: latencyLabels.e2e,
  prefill_device_ms: 'GPU prefill',
  decode_device_ms: 'GPU decode step',
};

export const pointOutcomeLabels: Readonly<Record<BenchPointResult['outcome'], string>> = {
  measured: 'measured',
  out_of_memory: 'out of memory',
  failed: 'failed',
  skipped: 'skipped',
  stopped: 'stopped',
};

export const pointOutcomeMeanings: typeof pointOutcomeLabels = {
  measured: 'all timed repeats ran',
  out_of_memory: 'the point does not fit into device memory',
  failed: 'the engine failed at this point',
  skipped: 'not started: a smaller point already failed, or it does not fit',
  stopped: 'the benchmark was stopped before or during it',
};

/** Topics of answers, most important first. */
export const answerLabels: Readonly<Record<BenchAnswer['id'], string>> = {
  variants: 'Variants',
  latency: 'Speed',
  batch_knee: 'Batch',
  bound: 'Bound by',
  idle: 'Idle',
  scaling: 'Scaling',
  prompt_cost: 'Prompt',
  output_cost: 'Output',
  regimes: 'Regimes',
  utilization: 'Device',
};

export const fitLabels: Readonly<Record<BenchFit['id'], string>> = {
  prompt: 'TTFT by prompt length',
  output: 'End to end by output length',
  batch_ttft: 'TTFT by batch size',
  batch_tpot: 'TPOT by batch size',
};

/** A point of a benchmark by its id (`b4-p128-o64`): "batch 4, 128 in + 64 out"; other ids are returned unchanged. */
export const pointLabel = (id: string): string =>
  id.replace(/^b(\d+)-p(\d+)-o(\d+)$/, 'batch $1, $2 in + $3 out');

/** The words of a point without its numbers, and its numbers; the plural of "2 users" is no difference. */
const partsOfPoint = (point: string) => ({
  words: point.replaceAll(/\d+(?:\.\d+)?/g, '').replace(' users', ' user'),
  numbers: (point.match(/\d+(?:\.\d+)?/g) ?? []).map(Number),
});

/** Points that differ in numbers only in the order of these, others as they came; figures without a point first. */
export function sortedPoints(points: Iterable<string | null>): (string | null)[] {
  const groups = new Map<string | null, { point: string | null; numbers: number[] }[]>([[null, []]]);
  for (const point of new Set(points)) {
    const { words, numbers } = point === null ? { words: null, numbers: [] } : partsOfPoint(point);
    groups.set(words, [...(groups.get(words) ?? []), { point, numbers }]);
  }
  return [...groups.values()].flatMap((group) =>
    group
      .toSorted(
        (a, b) =>
          a.numbers.map((n, i) => n - (b.numbers[i] ?? 0)).find((difference) => difference !== 0) ?? 0,
      )
      .map(({ point }) => point),
  );
}

/** "128 in + 64 out" */
export const lengthLabel = ({
  input_len: input,
  output_len: output,
}: Pick<BenchPointResult, 'input_len' | 'output_len'>): string => `${input} in + ${output} out`;

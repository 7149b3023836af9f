import { argmax } from '../../engines/onnx/sampling.js';
import type { Decoder } from '../../engines/onnx/decoder.js';
import type { StageKind } from '../../model/record.js';
import { monotonicNs } from '../../model/clock.js';

interface RecordedStage {
  kind: StageKind;
  step: number | null;
  start_ns: number;
  end_ns: number;
  newTokens: number;
  contextTokensSum: number;
}

export interface Generation {
  stages: RecordedStage[];
  start_ns: number;
  first_token_ns: number;
  end_ns: number;
}

/**
 * One greedy generation of `outputLen` tokens for a batch: prefill, then one decode call per token, with the sampling
 * between them timed as separate stages. No end-of-sequence check: every sequence gets its full length.
 * @returns null when `stopped` became true during the run
 */
export async function generate(
  decoder: Decoder,
  prompts: readonly ArrayLike<number>[],
  outputLen: number,
  stopped: () => boolean,
): Promise<Generation | null> {
  const batchSize = prompts.length;
  const inputLen = prompts[0]!.length;
  const stages: RecordedStage[] = [];
  const start_ns = monotonicNs();

  const prefill = await decoder.prefill(prompts);
  stages.push({
    kind: 'prefill',
    step: null,
    start_ns: prefill.start_ns,
    end_ns: prefill.end_ns,
    newTokens: batchSize * inputLen,
    contextTokensSum: batchSize * inputLen,
  });
  let tokens = sample(prefill.logits, null);
  const first_token_ns = stages.at(-1)!.end_ns;

  for (let step = 0; step < outputLen - 1; step++) {
    if (stopped()) return null;
    const result = await decoder.decode(tokens);
    stages.push({
      kind: 'decode',
      step,
      start_ns: result.start_ns,
      end_ns: result.end_ns,
      newTokens: batchSize,
      contextTokensSum: batchSize * (inputLen + step + 1),
    });
    tokens = sample(result.logits, step);
  }
  return { stages, start_ns, first_token_ns, end_ns: stages.at(-1)!.end_ns };

  function sample(logits: Float32Array, step: number | null): Int32Array {
    const from = monotonicNs();
    const next = argmax(logits, batchSize);
    stages.push({
      kind: 'sampling',
      step,
      start_ns: from,
      end_ns: monotonicNs(),
      newTokens: batchSize,
      contextTokensSum: 0,
    });
    return next;
  }
}

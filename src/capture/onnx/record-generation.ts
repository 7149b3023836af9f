import type { RecordWriter } from '../record-writer.js';
import type { Generation } from './generate.js';
import type { WorkloadPoint } from './plan.js';

/** Lines of one generation, its stages first. Called afterwards: nothing is written inside a timed region. */
export function recordGeneration(
  record: RecordWriter,
  { launch, point }: { launch: number; point: WorkloadPoint },
  generation: Generation,
  iteration: number,
  warmup: boolean,
): void {
  for (const stage of generation.stages) {
    record.add({
      type: 'stage',
      kind: stage.kind,
      name: `inferscope:${stage.kind}:${iteration}:${stage.step ?? 0}`,
      t_ns: stage.start_ns,
      end_ns: stage.end_ns,
      iteration,
      step: stage.step,
      batch_size: point.batchSize,
      new_tokens: stage.newTokens,
      context_tokens_sum: stage.contextTokensSum,
      warmup,
    });
  }
  record.add({
    type: 'request',
    t_ns: generation.start_ns,
    iteration,
    launch,
    warmup,
    batch_size: point.batchSize,
    input_len: point.inputLen,
    output_len: point.outputLen,
    first_token_ns: generation.first_token_ns,
    end_ns: generation.end_ns,
    ...(point.point === null ? {} : { point: point.point }),
  });
  record.flush();
}

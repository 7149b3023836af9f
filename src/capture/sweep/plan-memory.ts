import { InferscopeError } from '../../model/errors.js';
import { checkGrid } from '../../model/grid.js';
import { entryDefaults, type MemoryTargets, type ModelEntry } from './config.js';
import { modelSlug, variedOf, type PlannedRun, type SweepPlan } from './plan.js';

/** Keys of an entry that become a flag of `inferscope memory` with the same name. */
const flagKeys = [
  'dtype',
  'tensor_parallel_size',
  'quantization',
  'kv_cache_dtype',
  'model_params',
  'num_layers',
  'num_heads',
  'num_kv_heads',
  'head_dim',
  'hidden_size',
  'gpu_memory_utilization',
  'max_model_len',
] as const;

const listOf = <T>(value: T | readonly T[]): readonly T[] =>
  Array.isArray(value) ? (value as T[]) : [value as T];
/** `--batch-size 8` of batch_size: 8; empty for missing values. */
const flags = (values: Record<string, string | number | null | undefined>): string[] =>
  Object.entries(values).flatMap(([key, value]) =>
    value === null || value === undefined ? [] : [`--${key.replaceAll('_', '-')}`, String(value)],
  );

/**
 * Every combination of an entry's lists is a run of `inferscope memory`, in the order of the lists; the batch size changes fastest.
 * @param makeError makes the error of an entry from its position in the file
 * @throws the error of `makeError`, by default E_USAGE, for an entry without container in container mode
 */
export function planMemory(
  entries: readonly ModelEntry[],
  targets: MemoryTargets,
  makeError: (entry: number, what: string, fix: string) => InferscopeError = usageError,
): SweepPlan {
  const runs = entries.flatMap((entry, index) => {
    const container = targets.mode === 'url' ? null : (entry.container_name ?? targets.container);
    if (targets.mode === 'container' && container === null)
      throw makeError(
        index,
        `${entry.model_id} has no container_name`,
        'In container mode each entry names a running container: container_name: vllm-1',
      );
    return runsOf(entry, container, targets);
  });
  return { kind: 'memory', runs, varied: variedOf(runs) };
}

/** Checked before anything is expanded: all combinations of all entries. @throws E_USAGE with their count */
export function checkRuns(entries: readonly ModelEntry[]): void {
  const lengths = ['input_lengths', 'output_lengths', 'batch_sizes'] as const;
  const runCounts = entries.map((entry) =>
    lengths.reduce((product, key) => product * listOf<number>(entry[key] ?? 1).length, 1),
  );
  checkGrid({ 'models, lengths and batch sizes': runCounts.reduce((sum, size) => sum + size, 0) }, 'runs');
}

function runsOf(entry: ModelEntry, container: string | null, targets: MemoryTargets): PlannedRun[] {
  return listOf(entry.input_lengths).flatMap((input) =>
    listOf(entry.output_lengths).flatMap((output) =>
      listOf(entry.batch_sizes).map((batch): PlannedRun => {
        const dtype = entry.dtype ?? entryDefaults.dtype;
        const ranks = entry.tensor_parallel_size ?? entryDefaults.tensor_parallel_size;
        const labelParts = [
          modelSlug(entry.model_id),
          entry.dtype,
          entry.quantization,
          ranks > 1 ? `tp${ranks}` : null,
        ];
        return {
          label: `${labelParts.filter(Boolean).join(' ')}, batch ${batch}, ${input} in + ${output} out`,
          model: entry.model_id,
          arguments: [
            'memory',
            ...flags({
              model: entry.model_id,
              input_len: input,
              output_len: output,
              batch_size: batch,
            }),
            ...flags(Object.fromEntries(flagKeys.map((key) => [key, entry[key]]))),
            ...targetFlags(targets, container),
            '--json',
            '--yes',
          ],
          parameters: {
            model_id: entry.model_id,
            input_length: input,
            output_length: output,
            batch_size: batch,
            dtype,
            tensor_parallel_size: ranks,
            quantization: entry.quantization ?? null,
            kv_cache_dtype: entry.kv_cache_dtype ?? null,
            gpu_memory_utilization: entry.gpu_memory_utilization ?? entryDefaults.gpu_memory_utilization,
            max_model_len: entry.max_model_len ?? null,
            container_name: container,
          },
          writes: 'profile',
        };
      }),
    ),
  );
}

function targetFlags(targets: MemoryTargets, container: string | null): string[] {
  const { engine, device, weights, python, url } = targets;
  return [
    ...flags({ engine, device, weights, python }),
    ...targets.engineArgs.flatMap((arg) => ['--engine-arg', arg]),
    ...(container === null ? [] : ['--container', container]),
    ...(targets.mode === 'url' && url !== null ? ['--url', url] : []),
  ];
}

function usageError(_: number, what: string, fix: string): InferscopeError {
  return new InferscopeError('E_USAGE', {
    what,
    why: 'With --container every model runs in a running container.',
    fix: fix.replace('container_name: vllm-1', '--container vllm-1'),
  });
}

import { readArchitecture } from '../llm/read-architecture.js';
import { type SweepPoint, sweepCases, usualSizes } from '../llm/kernel-cases.js';
import { type ModelStep, modelCases } from '../llm/kernel-model.js';
import { declaredDType, quantizedWeights } from '../llm/quantization.js';
import { floatStorage, type Storage } from '../llm/storage.js';
import { architectureIssues } from '../llm/architecture-issues.js';
import type { Issue } from '../model/document.js';
import type { DType } from '../model/dtype.js';
import { InferscopeError } from '../model/errors.js';
import { kernelNames, type KernelCase, type KernelName } from '../model/kernels.js';
import { findModel } from '../engines/model-files/find-model.js';
import type { KernelsOptions } from './kernels-option-values.js';

export interface ChosenCases {
  cases: KernelCase[];
  points: SweepPoint[];
  model: { name: string; dtype: string; config: Record<string, unknown>; steps: ModelStep[] } | null;
  issues: Issue[];
}

/**
 * Cases to measure: the named kernels over their sweep, or a model's operations.
 * @throws E_USAGE, E_DTYPE, E_LENGTHS, E_MODEL_NOT_FOUND, E_MODEL_CONFIG, E_MODEL_ARCHITECTURE
 */
export async function chooseCases(
  names: readonly KernelName[],
  options: KernelsOptions,
  target: { gpu: boolean; dtypes: readonly string[] },
): Promise<ChosenCases> {
  if (options.fromModel !== undefined) return chooseModelCases(options.fromModel, names, options, target);
  if (options.contextLen) {
    throw usage('--context-len needs --from-model', 'Named kernels take --seq-len.', '--seq-len 512,4096');
  }
  const defaults = usualSizes[target.gpu ? 'gpu' : 'cpu'];
  const chosen = names.length > 0 ? [...new Set(names)] : kernelNames;
  const { cases, points } = sweepCases(
    chosen,
    {
      batchSizes: options.batchSize ?? [defaults.batchSize],
      seqLens: options.seqLen ?? [defaults.seqLen],
      hiddenSizes: options.hiddenSize ?? [defaults.hiddenSize],
      dtypes: target.dtypes,
      backends: options.backend ?? [null],
    },
    defaults.vocab,
  );
  if (cases.length === 0) {
    throw new InferscopeError('E_DTYPE', {
      what: `${names.join(', ')} does not support ${target.dtypes.join(', ')}`,
      why: dtypeLimits,
      fix: 'Remove --dtype, or use --dtype bfloat16.',
    });
  }
  return { cases, points, model: null, issues: leftOutIssues(chosen, target.dtypes, cases) };
}

const dtypeLimits =
  'Only gemm and linear support float8 and int8; tfloat32 applies to matrix multiplications.';

/** Requested dtypes that some of the kernels do not have. */
function leftOutIssues(
  names: readonly KernelName[],
  dtypes: readonly string[],
  cases: ChosenCases['cases'],
): Issue[] {
  return dtypes.flatMap((dtype): Issue[] => {
    const lacking = names.filter((name) => !cases.some((one) => one.kernel === name && one.dtype === dtype));
    if (lacking.length === 0) return [];
    const text = `Not measured in ${dtype}: ${lacking.join(', ')}. ${dtypeLimits}`;
    return [{ code: 'dtype_left_out', severity: 'warning', text }];
  });
}

async function chooseModelCases(
  spec: string,
  names: readonly KernelName[],
  options: KernelsOptions,
  { gpu, dtypes }: { gpu: boolean; dtypes: readonly string[] },
): Promise<ChosenCases> {
  if (names.length > 0)
    throw usage(
      'kernel names and --from-model are mutually exclusive',
      'The model defines the operations.',
      'inferscope kernels --from-model llama-3.1-8b',
    );
  for (const [flag, value] of [
    ['--seq-len', options.seqLen],
    ['--hidden-size', options.hiddenSize],
  ] as const)
    if (value)
      throw usage(
        `${flag} and --from-model are mutually exclusive`,
        'The model and --context-len define the sizes.',
        '--context-len 128,2048',
      );
  if (dtypes.length > 1)
    throw usage(
      '--from-model accepts one --dtype',
      'The sum over a step needs one dtype.',
      '--dtype bfloat16',
    );
  const { name, config } = await findModel(spec);
  const architecture = readArchitecture(config);
  const dtype = options.dtype ? dtypes[0]! : ((gpu ? declaredDType(config) : null) ?? dtypes[0]!);
  if (dtype === 'tfloat32')
    throw usage(
      '--from-model does not support tfloat32',
      'It is a multiplication mode for float32, not a storage dtype.',
      '--dtype float32',
    );
  const backends = options.backend ?? [null];
  // One backend for all attention of the model; several would give several sums.
  if (backends.length > 1)
    throw usage(
      '--from-model accepts one --backend',
      'The sum over a step needs one attention kernel.',
      '--backend flash',
    );
  const { steps, cases } = modelCases(architecture, storageOf(dtype as DType, config), {
    batchSizes: options.batchSize ?? [1],
    contextLens: options.contextLen ?? [128],
    backend: backends[0]!,
  });
  return {
    cases,
    points: [],
    model: { name, dtype, config, steps },
    issues: architectureIssues(architecture),
  };
}

function storageOf(dtype: DType, config: Record<string, unknown>): Storage {
  const float = declaredDType(config) ?? 'bfloat16';
  if (dtype !== 'float8' && dtype !== 'int8') return floatStorage(dtype);
  const weights = quantizedWeights(dtype === 'float8' ? 'fp8-row' : 'int8-row', float);
  return { weights, activations: float, kvCache: float };
}

function usage(what: string, why: string, example: string): InferscopeError {
  return new InferscopeError('E_USAGE', { what, why, fix: `Type for example: ${example}` });
}

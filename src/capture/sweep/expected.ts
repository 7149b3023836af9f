import type { Architecture } from '../../llm/architecture.js';
import { readArchitecture } from '../../llm/read-architecture.js';
import { estimateMemory } from '../../llm/memory-estimate.js';
import type { MemoryEngine } from '../../llm/memory-request.js';
import { kvDTypeNamed, schemeNamed, storageOf as requestedStorage } from '../../llm/memory-storage.js';
import { weightBytes, type Storage } from '../../llm/storage.js';
import { architectureIssues } from '../../llm/architecture-issues.js';
import type { Issue } from '../../model/document.js';
import type { SweepRun } from '../../model/documents/sweep.js';
import { parseDType } from '../../model/dtype.js';
import { messageOf } from '../../model/errors.js';
import { withText } from '../../model/sentence-template.js';
import { poolTooSmall } from '../../vocabulary/memory-components.js';
import type { ModelEntry } from './config.js';

type Expected = SweepRun['expected'];
type Parameters = SweepRun['parameters'];

/** Device of a run's engine. */
export interface RunPlace {
  /** Null: a running server, perhaps on another machine. */
  engine: MemoryEngine | null;
  /** For messages and rough estimates. */
  device: 'gpu' | 'cpu';
  /** Bytes of each device that the engine would use; empty: unknown. */
  capacities: readonly number[];
}

/** Facts about this machine and its earlier runs. */
export interface SweepContext {
  placeOf: (run: SweepRun) => Promise<RunPlace>;
  /** config.json of a model; throws if it is unknown without a download. */
  configOf: (model: string) => Promise<Record<string, unknown>>;
  /** Durations of earlier runs, by run key. */
  earlierSeconds: ReadonlyMap<string, number>;
}

/**
 * Rough estimates for a sweep without earlier runs here: startup of the engine with its imports (and vLLM's graphs), weights read at 1
 * GB/s, 5.5 repeats of decode at half of a typical device's bandwidth, a step of at least 20 ms in Python.
 */
const startUpS: Record<MemoryEngine, number> = { onnx: 3, transformers: 30, vllm: 90 };
const readBytesPerS = 1e9;
const repeats = 5.5;
const decodeBytesPerS = { gpu: 5e11, cpu: 1e10 } as const;
const minStepS = { gpu: 0.02, cpu: 0.001 } as const;

/**
 * Time and memory of each run before it starts. Never throws: unknown values have a reason.
 * @returns reasons to doubt the memory of a model
 */
export async function expectRuns(
  runs: readonly SweepRun[],
  dimensions: ReadonlyMap<string, Partial<ModelEntry>>,
  context: SweepContext,
): Promise<Issue[]> {
  const issues = new Map<string, Issue>();
  const architectures = new Map<string, Promise<Architecture | string>>();
  for (const run of runs) {
    const place = await context.placeOf(run);
    const model = run.parameters['model_id'];
    if (typeof model !== 'string') {
      const why = 'only memory sweeps have a memory estimate';
      run.expected = { ...unknownMemory(why), ...estimateTime(run, place, context, null) };
      continue;
    }
    // Without a requested dtype the embedded engine computes in float32, and that of a server is unknown.
    if (!run.arguments.includes('--dtype')) {
      if (place.engine === 'onnx') run.parameters['dtype'] = 'float32';
      if (place.engine === null) run.parameters['dtype'] = null;
    }
    if (place.engine !== 'vllm' && !run.arguments.includes('--gpu-memory-utilization'))
      run.parameters['gpu_memory_utilization'] = null;
    const key = JSON.stringify([model, dimensions.get(run.key) ?? {}]);
    let found = architectures.get(key);
    if (!found)
      architectures.set(key, (found = loadArchitecture(model, dimensions.get(run.key) ?? {}, context)));
    const architecture = await found;
    run.expected = expectRun(run, place, architecture, context);
    if (typeof architecture === 'string') continue;
    for (const issue of architectureIssues(architecture))
      issues.set(`${issue.code} ${model}`, withText(issue, `${model}: ${issue.text}`));
  }
  return [...issues.values()];
}

async function loadArchitecture(
  model: string,
  entry: Partial<ModelEntry>,
  { configOf }: SweepContext,
): Promise<Architecture | string> {
  try {
    const config = await configOf(model);
    const overrides = {
      num_hidden_layers: entry.num_layers,
      num_attention_heads: entry.num_heads,
      num_key_value_heads: entry.num_kv_heads,
      head_dim: entry.head_dim,
      hidden_size: entry.hidden_size,
    };
    const definedOverrides = Object.entries(overrides).filter(
      ([, value]) => value !== undefined && value !== null,
    );
    return readArchitecture({ ...config, ...Object.fromEntries(definedOverrides) });
  } catch (error) {
    return messageOf(error);
  }
}

function expectRun(
  run: SweepRun,
  place: RunPlace,
  architecture: Architecture | string,
  context: SweepContext,
): Expected {
  if (typeof architecture === 'string')
    return { ...unknownMemory(architecture), ...estimateTime(run, place, context, null) };
  const { engine, device, capacities } = place;
  const { parameters: p } = run;
  try {
    const storage = storageOf(p, engine === 'onnx');
    const time = estimateTime(run, place, context, { architecture, storage });
    if (engine === null)
      return {
        ...unknownMemory('The server is already running: its memory was reserved at its start.'),
        ...time,
      };
    const ranks = Number(p['tensor_parallel_size'] ?? 1);
    const capacity = capacities.length >= ranks ? Math.min(...capacities) : null;
    const estimate = estimateMemory(architecture, {
      engine,
      batchSize: Number(p['batch_size']),
      inputLen: Number(p['input_length']),
      outputLen: Number(p['output_length']),
      storage,
      parallel: { tensor: ranks },
      gpu: { name: null, totalBytes: capacity },
      device,
      gpuMemoryUtilization: Number(p['gpu_memory_utilization'] ?? 0.9),
      maxModelLen: p['max_model_len'] === null ? null : Number(p['max_model_len']),
    });
    const tooFewGpus = device === 'gpu' && capacities.length > 0 && capacities.length < ranks;
    return {
      ...time,
      memory_bytes: estimate.largestGpuBytes,
      capacity_bytes: estimate.capacityBytes,
      fits: tooFewGpus ? false : estimate.fits,
      why: tooFewGpus
        ? `It needs ${ranks} GPUs; ${capacities.length} are visible here.`
        : estimate.fits === null
          ? `The memory of ${ranks === 1 ? 'a device' : `${ranks} devices`} is unknown: no GPU is visible.`
          : estimate.holdsBatch && !estimate.fits
            ? `${poolTooSmall(estimate.request.maxModelLen)}.`
            : `inferscope estimate, ${engine}: ${estimate.gpus.length === 1 ? 'the device' : `the fullest of ${estimate.gpus.length} devices`} at its peak (${estimate.peak}).`,
    };
  } catch (error) {
    return { ...unknownMemory(messageOf(error)), ...estimateTime(run, place, context, null) };
  }
}

/** The embedded engine computes and caches in float32 in any storage format of the weights. */
function storageOf({ dtype, quantization, kv_cache_dtype: kv }: Parameters, embedded: boolean): Storage {
  const parsed = parseDType(String(dtype ?? 'float16'));
  const isFloat = parsed === 'float32' || parsed === 'float16' || parsed === 'bfloat16';
  return requestedStorage(
    { torch_dtype: embedded ? 'float32' : 'float16' },
    {
      dtype: embedded && isFloat ? 'float32' : parsed,
      onCpu: embedded,
      quantization: typeof quantization === 'string' ? schemeNamed(quantization) : null,
      kvCacheDtype: typeof kv === 'string' ? kvDTypeNamed(kv) : null,
    },
  );
}

const unknownMemory = (why: string): Omit<Expected, 'seconds' | 'basis'> => ({
  memory_bytes: null,
  capacity_bytes: null,
  fits: null,
  why,
});

function estimateTime(
  run: SweepRun,
  { engine, device }: RunPlace,
  { earlierSeconds }: SweepContext,
  model: { architecture: Architecture; storage: Storage } | null,
): Pick<Expected, 'seconds' | 'basis'> {
  const took = earlierSeconds.get(run.key);
  if (took !== undefined) return { seconds: took, basis: 'the duration of an earlier run of this command' };
  const startUp = engine === null ? 0 : startUpS[engine];
  if (!model)
    return {
      seconds: startUp,
      basis: 'engine startup only',
    };
  const bytes = weightBytes(model.architecture, model.storage).total;
  const step = Math.max(minStepS[device], bytes / decodeBytesPerS[device]);
  const decode = repeats * Number(run.parameters['output_length']) * step;
  if (engine === null) return { seconds: decode, basis: 'decode at half of a typical memory bandwidth' };
  return {
    seconds: startUp + bytes / readBytesPerS + decode,
    basis: 'engine startup, reading of the weights, decode at half of a typical memory bandwidth',
  };
}

/**
 * Seconds left: the plan's estimate for the remaining runs, corrected by its error so far. The current run
 * uses only its own time: one that takes longer does not shorten the others.
 */
export function secondsLeft(
  runs: readonly SweepRun[],
  isRemaining: (run: SweepRun) => boolean,
  current: { run: SweepRun; seconds: number },
): number {
  const done = runs.filter((run) => run.outcome === 'measured' && run.duration_s !== null);
  const expected = done.reduce((sum, run) => sum + run.expected.seconds, 0);
  const took = done.reduce((sum, run) => sum + run.duration_s!, 0);
  const factor = expected > 0 ? took / expected : 1;
  return runs.filter(isRemaining).reduce((sum, run) => {
    const expectedS = run.expected.seconds * factor;
    return sum + (run === current.run ? Math.max(0, expectedS - current.seconds) : expectedS);
  }, 0);
}

import { defaultThreads } from '../../engines/onnx/decoder.js';
import type { WriteProgress } from '../../engines/onnx/model-cache.js';
import { resolveModel } from '../../engines/onnx/model-source.js';
import { loadOnnxRuntime } from '../../engines/onnx/runtime.js';
import { detectCpu } from '../../hardware/cpu.js';
import { packageVersion } from '../../hardware/environment.js';
import type { BenchPoint } from '../../model/bench.js';
import { parseDType } from '../../model/dtype.js';
import type { Engine, EngineRequest, PreparedEngine } from '../../model/engine.js';
import { InferscopeError } from '../../model/errors.js';
import { exceedsMemory, requireMemory } from '../onnx/memory-need.js';
import { copiedCache } from './copied-cache.js';
import { parseOnnxArgs, type OnnxArgs } from './onnx-args.js';
import { refuseAll } from './refuse-all.js';
import { launchOnnx } from './onnx-launch.js';
import { plural } from '../../vocabulary/format.js';
import { lengthWords } from '../../vocabulary/workload.js';
import { type OnnxModel, modelOfWorkload } from '../../engines/onnx/onnx-model.js';

interface OnnxEngineOptions {
  /** Cache folder of generated models. */
  cacheDir: string;
  /** Seed of random weights. */
  seed: number;
  onProgress?: (progress: WriteProgress) => void;
}

/** The embedded engine: ONNX Runtime on this machine's CPU, in its own processes. */
export function onnxEngine(options: OnnxEngineOptions): Engine {
  return { name: 'onnx', prepare: (request) => prepare(request, options) };
}

async function prepare(request: EngineRequest, options: OnnxEngineOptions): Promise<PreparedEngine> {
  if (request.device !== null && request.device !== 'cpu') {
    throw new InferscopeError('E_USAGE', {
      what: `the embedded engine has no device ${request.device}`,
      why: 'It computes on the CPU only.',
      fix: 'Leave out --device, or use --engine transformers or vllm for a GPU.',
    });
  }
  const args = parseOnnxArgs(request.engineArgs);
  // Loading it here would only cost memory. If it is missing, fail before a model is written.
  if (packageVersion('onnxruntime-node') === null) await loadOnnxRuntime();
  const model = await resolveModel(request.model, {
    cacheDir: options.cacheDir,
    seed: options.seed,
    ...(request.dtype === null ? {} : { dtype: parseDType(request.dtype) }),
    ...(args.computeInt4 === undefined ? {} : { computeInt4: args.computeInt4 }),
    ...(options.onProgress === undefined ? {} : { onProgress: options.onProgress }),
    accept: (described) => {
      checkWeights(described, request);
      // No point is smaller: if this does not fit, refuse before gigabytes of weights are written.
      requireMemory(described, { batchSize: 1, inputLen: 1, outputLen: 1 });
      if (request.points) refuseAll(request.points.map((point) => refuses(described, point)));
    },
  });
  const threads = args.threads ?? request.threads ?? defaultThreads(detectCpu().usableCores);
  return {
    name: 'onnx',
    workload: workloadOf(model, threads, args),
    maxContext: model.maxContext,
    notMeasured: {
      device_time: {
        code: 'no_device',
        text: 'the embedded engine computes on the CPU: there are no device events, host times are the measured times',
      },
      device_work: {
        code: 'no_device',
        text: 'the embedded engine computes on the CPU; inferscope profile shows its operators',
      },
      kv_occupancy: {
        code: 'not_paged',
        text: 'the embedded engine allocates each cache for its whole context: its occupancy is not informative',
      },
    },
    issues: (points) => copiedCache(model, points),
    refusal: (point) => refuses(model, point),
    launch: (order, control) => launchOnnx({ model, threads, args }, order, control),
  };
}

function refuses(model: OnnxModel, point: BenchPoint): string | null {
  const { batch_size: batchSize, input_len: inputLen, output_len: outputLen } = point;
  if (model.maxContext !== null && inputLen + outputLen > model.maxContext)
    return `${model.name} cannot process ${lengthWords(inputLen, outputLen)}: its maximum context is ${plural(model.maxContext, 'token')}, prompt and output together.`;
  return exceedsMemory(model, { batchSize, inputLen, outputLen });
}

/** @throws E_USAGE if the requested weights are not those of the model */
function checkWeights(model: OnnxModel, { weights }: EngineRequest): void {
  if (weights === null || weights === model.weights) return;
  throw new InferscopeError('E_USAGE', {
    what: `${model.name} has ${model.weights} weights, not ${weights} ones`,
    why: 'The embedded engine generates random weights for presets and config.json files, and uses the weights of an ONNX export.',
    fix:
      weights === 'trained'
        ? 'Give --model a folder with an ONNX export, or leave out --weights.'
        : 'Give --model a preset or the config.json of the model, or leave out --weights.',
  });
}

function workloadOf(model: OnnxModel, threads: number, args: OnnxArgs): PreparedEngine['workload'] {
  return {
    model: modelOfWorkload(model),
    engine: {
      name: 'onnxruntime',
      version: packageVersion('onnxruntime-node'),
      options: {
        kv_cache: model.kvCache,
        logits: model.logits,
        graph_optimization: args.graphOptimization ?? 'all',
      },
    },
    device: 'cpu',
    threads,
    batch_size: null,
    input_len: null,
    output_len: null,
    tensor_parallel_size: 1,
  };
}

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Architecture } from '../../llm/architecture.js';
import { checkDecoderOnly, readArchitecture } from '../../llm/read-architecture.js';
import { countParameters } from '../../llm/parameters.js';
import type { BenchPoint } from '../../model/bench.js';
import { parseDType } from '../../model/dtype.js';
import type { Engine, EngineRequest, PreparedEngine } from '../../model/engine.js';
import { InferscopeError } from '../../model/errors.js';
import { packageRoot } from '../../model/installation.js';
import { chooseModel, quantizationOf, type ChosenModel } from './choose-model.js';
import { checkForCpu, parseTransformersArgs, type TransformersArgs } from './engine-args.js';
import { findPython, pythonCandidates, type PythonEnvironment } from './interpreter.js';
import { launchPython } from './launch.js';
import { fromErrorLine } from './process-failure.js';
import { plural } from '../../vocabulary/format.js';
import { lengthWords } from '../../vocabulary/workload.js';

/** from_pretrained accepts `dtype` from this version on; before it was torch_dtype. */
const oldestTransformers = [4, 56] as const;

/**
 * PyTorch and transformers in processes of the user's Python: eager, compiled or as CUDA graphs; CUDA, ROCm or CPU.
 * @throws E_ENGINE_MISSING, E_USAGE, E_DTYPE, E_MODEL_NOT_FOUND, E_MODEL_CONFIG, E_MODEL_ACCESS; E_MODEL_ARCHITECTURE for an
 *   encoder-decoder model
 */
export const transformersEngine: Engine = { name: 'transformers', prepare };

async function prepare(request: EngineRequest): Promise<PreparedEngine> {
  const args = parseTransformersArgs(request.engineArgs, request.threads);
  const requestedDevice = readDevice(request.device);
  const dtype = readDtype(request.dtype);
  const script = probeFile('inferscope_engine.py');
  const chosen = await chooseModel(request.model, request.weights);
  checkDecoderOnly(chosen.config ?? {});
  const python = await findPython(pythonCandidates(request.python), ['torch', 'transformers'], {
    probe: probeFile(''),
    hubId: chosen.config === null ? chosen.source : null,
  });
  checkVersion(python);
  const device = chooseDevice(requestedDevice, python);
  if (device === 'cpu') checkForCpu(args);
  else checkGpuCount(args.tensorParallelSize, device, python);
  const model = withConfig(chosen, python);
  checkDecoderOnly(model.config ?? {});
  // GPUs use half precision; CPUs emulate it, or are no faster with it.
  const used = { model, device, dtype: dtype ?? (device === 'cpu' ? 'float32' : 'float16') };
  const maxContext = longestContext(model.config);
  const window = args.mode === 'eager' ? null : smallestWindow(model.config);
  return {
    name: 'transformers',
    workload: workloadOf(used, args, python),
    maxContext,
    notMeasured: notMeasured(device),
    refusal: (point) =>
      contextRefusal(point, model.name, maxContext) ?? windowRefusal(point, args.mode, window),
    launch: (order, control) =>
      launchPython(
        {
          command: python.command,
          script,
          ranks: args.tensorParallelSize,
          order: {
            ...order,
            name: model.name,
            model: model.source,
            // Trained weights come with their config.json.
            config: model.weights === 'random' ? model.config : null,
            weights: model.weights,
            dtype: used.dtype,
            device,
            engine_args: argsOf(args),
          },
        },
        control,
      ),
  };
}

function probeFile(name: string): string {
  const path = join(packageRoot(), 'python', 'inferscope_probe', name);
  if (existsSync(path)) return path;
  throw new InferscopeError('E_ENGINE_MISSING', {
    what: 'the Python side of inferscope is not in this installation',
    why: `${path} is missing.`,
    fix: 'Install inferscope again.',
  });
}

function argsOf({ threads, tf32, tensorParallelSize, ...args }: TransformersArgs): Record<string, string> {
  return {
    ...args,
    tf32: String(tf32),
    ...(threads === null ? {} : { threads: String(threads) }),
    ...(tensorParallelSize === 1 ? {} : { tensor_parallel_size: String(tensorParallelSize) }),
  };
}

/** Rank N uses GPU N. */
function checkGpuCount(ranks: number, device: string, { torch }: PythonEnvironment): void {
  const count = torch?.devices.length ?? 0;
  if (ranks === 1 || (ranks <= count && device === 'cuda')) return;
  throw new InferscopeError(ranks <= count ? 'E_USAGE' : 'E_ENGINE_MISSING', {
    what:
      ranks <= count
        ? `tensor_parallel_size=${ranks} cannot be combined with --device ${device}`
        : `tensor_parallel_size=${ranks} is too large: torch finds ${plural(count, 'GPU')}`,
    why: 'Each rank needs a GPU of its own, the first takes cuda:0.',
    fix:
      ranks <= count
        ? 'Take --device cuda; CUDA_VISIBLE_DEVICES chooses GPUs.'
        : 'Take fewer, or --device cpu to try it.',
  });
}

function readDevice(device: string | null): string | null {
  if (device === null) return null;
  const name = device.trim().toLowerCase();
  if (name === 'cpu' || /^cuda(:\d+)?$/.test(name)) return name;
  // torch calls ROCm GPUs cuda as well.
  if (/^(gpu|rocm|hip)(:\d+)?$/.test(name)) return name.replace(/^\w+/, 'cuda');
  throw new InferscopeError('E_USAGE', {
    what: `the transformers engine has no device ${device}`,
    why: 'It takes cpu, cuda or cuda:N (N counts from 0; GPUs of AMD are called cuda, too).',
    fix: 'Type for example: --device cuda',
  });
}

function readDtype(text: string | null): string | null {
  if (text === null) return null;
  const dtype = parseDType(text);
  if (dtype === 'float32' || dtype === 'float16' || dtype === 'bfloat16') return dtype;
  throw new InferscopeError('E_DTYPE', {
    what: `the transformers engine cannot compute in ${dtype}`,
    why: 'Every quantization of transformers needs its own package.',
    fix: 'Take --dtype float16, bfloat16 or float32, or give --model one that was published quantized.',
  });
}

function checkVersion({ command, packages }: PythonEnvironment): void {
  const version = packages['transformers'] ?? '';
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [oldestMajor, oldestMinor] = oldestTransformers;
  if (major > oldestMajor || (major === oldestMajor && minor >= oldestMinor)) return;
  throw new InferscopeError('E_ENGINE_MISSING', {
    what: `transformers ${version} of ${command} is too old`,
    why: `The engine needs ${oldestTransformers.join('.')} or newer.`,
    fix: `Type: ${command} -m pip install -U transformers`,
  });
}

function chooseDevice(requested: string | null, { command, packages, torch }: PythonEnvironment): string {
  const devices = torch?.devices ?? [];
  if (requested === null) return devices.length > 0 ? 'cuda' : 'cpu';
  const index = requested === 'cpu' ? null : Number(requested.split(':')[1] ?? 0);
  if (index === null || index < devices.length) return requested;
  const build = torch?.hip ? `ROCm ${torch.hip}` : torch?.cuda ? `CUDA ${torch.cuda}` : 'the CPU only';
  throw new InferscopeError('E_ENGINE_MISSING', {
    what:
      devices.length === 0
        ? `device ${requested} does not exist: torch ${packages['torch']} finds no GPU`
        : `device ${requested} does not exist: torch finds ${plural(devices.length, 'GPU')}`,
    why: `torch of ${command} is built for ${build}; CUDA_VISIBLE_DEVICES or the driver may hide a GPU.`,
    fix: 'Type: inferscope doctor – it checks driver, CUDA and torch separately – or take --device cpu.',
  });
}

/** @throws the hub's error if it does not provide the config.json */
function withConfig(model: ChosenModel, { model: hubConfig }: PythonEnvironment): ChosenModel {
  if (hubConfig === null) return model;
  if ('code' in hubConfig) throw fromErrorLine(hubConfig);
  return { ...model, config: hubConfig.config };
}

function longestContext(config: Record<string, unknown> | null): number | null {
  const length = config?.['max_position_embeddings'] ?? config?.['n_positions'];
  return typeof length === 'number' && length > 0 ? length : null;
}

function contextRefusal({ input_len, output_len }: BenchPoint, name: string, maxContext: number | null) {
  return maxContext !== null && input_len + output_len > maxContext
    ? `${name} cannot process ${lengthWords(input_len, output_len)}: its maximum context is ${plural(maxContext, 'token')}, prompt and output together.`
    : null;
}

/** Captured and compiled steps cannot follow a full window (Decoder._replace_windows of inferscope_decoder.py). */
function windowRefusal({ input_len, output_len }: BenchPoint, mode: string, window: number | null) {
  return window !== null && input_len + output_len > window
    ? `mode=${mode} cannot run ${lengthWords(input_len, output_len)} through an attention window of ${window}; mode=eager can.`
    : null;
}

function smallestWindow(config: Record<string, unknown> | null): number | null {
  const windows = (architectureOrNull(config)?.layers ?? []).flatMap(
    ({ attention }) => attention.window ?? [],
  );
  return windows.length > 0 ? Math.min(...windows) : null;
}

/** Null for an unknown family, which still runs. */
function architectureOrNull(config: Record<string, unknown> | null): Architecture | null {
  if (config === null) return null;
  try {
    return readArchitecture(config);
  } catch {
    return null;
  }
}

function workloadOf(
  { model, device, dtype }: { model: ChosenModel; device: string; dtype: string },
  args: TransformersArgs,
  { version, packages, torch }: PythonEnvironment,
): PreparedEngine['workload'] {
  const { threads, tensorParallelSize, ...options } = args;
  const architecture = architectureOrNull(model.config);
  const index = Number(device.split(':')[1] ?? 0);
  return {
    model: model.config && {
      name: model.name,
      config: model.config,
      dtype,
      quantization: quantizationOf(model.config),
      weights: model.weights,
      num_parameters: architecture && countParameters(architecture).total,
      weight_bytes: null,
    },
    engine: {
      name: 'transformers',
      version: packages['transformers'] ?? null,
      options: {
        ...options,
        torch: packages['torch'] ?? null,
        cuda: torch?.cuda ?? null,
        rocm: torch?.hip ?? null,
        python: version,
        gpu: device === 'cpu' ? null : (torch?.devices[index] ?? null),
      },
    },
    device,
    threads,
    batch_size: null,
    input_len: null,
    output_len: null,
    tensor_parallel_size: tensorParallelSize,
  };
}

function notMeasured(device: string): PreparedEngine['notMeasured'] {
  const kv_occupancy: PreparedEngine['notMeasured'][string] = {
    code: 'not_paged',
    text: 'transformers allocates each cache for its own sequences: there is no pool that could be full',
  };
  if (device !== 'cpu') return { kv_occupancy };
  const no = (text: string): PreparedEngine['notMeasured'][string] => ({ code: 'no_device', text });
  return {
    kv_occupancy,
    device_time: no('On the CPU there are no device events: host times are the times'),
    device_work: no('On the CPU there are no kernels; inferscope run --evaluator torch shows its operators'),
    idle_share: no('On the CPU there is no device apart from the host that could be idle'),
  };
}

import { join } from 'node:path';
import type { BenchPoint } from '../../model/bench.js';
import type { Issue } from '../../model/document.js';
import type { Engine, EngineRequest, PreparedEngine } from '../../model/engine.js';
import { InferscopeError } from '../../model/errors.js';
import { packageRoot } from '../../model/installation.js';
import { type ChosenModel, chooseModel } from '../transformers/choose-model.js';
import { findPython, pythonCandidates } from '../transformers/interpreter.js';
import { launchPython } from '../transformers/launch.js';
import { benchProtocol, benchSampling, benchVerbs, launchBench } from './bench-command.js';
import { missingFromBench, missingOffline } from './not-measured.js';
import { placeModel, tokenizerOf, vllmConfig } from './place-model.js';
import { withRootCause } from './root-cause.js';
import { needVersion, withServerHint } from './vllm-version.js';
import { plural } from '../../vocabulary/format.js';
import { lengthWords } from '../../vocabulary/workload.js';

const modes = ['offline', ...Object.keys(benchVerbs)] as const;

/**
 * vLLM in separate processes. `--engine-arg via=offline` (default) steps its engine through the probe; `via=bench` runs
 * its `vllm bench latency`, `via=bench-throughput` its `vllm bench throughput`, once per point. All other engine
 * arguments are passed to vLLM.
 * @throws E_ENGINE_MISSING, E_TOOL_VERSION, E_USAGE, E_MODEL_NOT_FOUND, E_MODEL_CONFIG, E_MODEL_ARCHITECTURE
 */
export const vllmEngine: Engine = {
  name: 'vllm',
  async prepare(request: EngineRequest): Promise<PreparedEngine> {
    const { via = 'offline', ...args } = request.engineArgs;
    checkRequest(request, via);
    const model = await chooseModel(request.model, request.weights);
    if (model.weights === 'random' && model.config !== null) vllmConfig(model.name, model.config);
    const python = await findPython(pythonCandidates(request.python), ['vllm'], {
      probe: probeFolder(),
      hubId: null,
    }).catch((error: unknown) => {
      throw withServerHint(error);
    });
    const version = python.packages['vllm']!;
    // A CPU build runs without a GPU; the device that the engine records overrides this.
    const device = request.device ?? (python.torch?.devices.length === 0 ? 'cpu' : 'cuda');
    const maxContext = contextOf(model, args);
    const common = {
      name: 'vllm' as const,
      workload: workloadOf(model, request, version, device),
      maxContext,
      refusal: ({ input_len, output_len }: { input_len: number; output_len: number }) =>
        maxContext !== null && input_len + output_len > maxContext
          ? `${lengthWords(input_len, output_len)} exceed its context (${plural(maxContext, 'token')})`
          : null,
    };
    if (via === 'offline') {
      needVersion(python.command, version, 6, 'stepping its engine');
      return {
        ...common,
        notMeasured: missingOffline(device),
        issues: (points) => batchIssues(points, args),
        launch(order, control) {
          const launchOrder = {
            ...order,
            model: placeModel(model, control.scratch),
            name: model.name,
            weights: model.weights,
            engine_args: args,
          };
          const script = join(probeFolder(), 'inferscope_vllm.py');
          const engineLaunch = launchPython({ command: python.command, script, order: launchOrder }, control);
          const ended = engineLaunch.ended.then(({ failure, log }) => ({
            failure: withRootCause(failure, log),
            log,
          }));
          return { pid: engineLaunch.pid, ended };
        },
      };
    }
    needVersion(python.command, version, 8, 'vllm bench');
    const verb = benchVerbs[via as keyof typeof benchVerbs];
    if (verb === 'latency') checkVocabulary(model);
    const target = {
      python: python.command,
      command: join(probeFolder(), 'inferscope_vllm_command.py'),
      version,
      verb,
      name: model.name,
      weights: model.weights,
      config: model.config,
      device,
      tokenizer: verb === 'throughput' ? promptTokenizer(model, args) : null,
      place: (scratch: string) => placeModel(model, scratch),
    };
    return {
      ...common,
      notMeasured: missingFromBench(verb, device),
      sampling: benchSampling(verb, args),
      ...benchProtocol(verb),
      launch: (order, control) => launchBench(target, { ...order, engine_args: args }, control),
    };
  },
};

const probeFolder = () => join(packageRoot(), 'python', 'inferscope_probe');

/** A batch beyond max_num_seqs is not one batch: its last sequences start only after the first have ended. */
function batchIssues(points: readonly BenchPoint[], args: Record<string, string>): Issue[] {
  const maxSequences = Number(args['max_num_seqs'] ?? args['max-num-seqs'] ?? Number.NaN);
  const sizes = [
    ...new Set(points.map(({ batch_size }) => batch_size).filter((size) => size > maxSequences)),
  ];
  if (sizes.length === 0) return [];
  const text = `max_num_seqs=${maxSequences} runs ${maxSequences} sequences at once: of batch ${sizes.join(', ')} the others wait, which TTFT includes.`;
  return [{ code: 'batch_waits', severity: 'info', text }];
}

/** Range of the prompt token ids in vllm/benchmarks/latency.py, for every model. */
const promptTokenIds = 10_000;

/** @throws E_USAGE for a smaller vocabulary, because the embedding lacks such rows */
function checkVocabulary({ name, config }: ChosenModel): void {
  const size = config?.['vocab_size'];
  if (typeof size !== 'number' || size >= promptTokenIds) return;
  throw new InferscopeError('E_USAGE', {
    what: `vllm bench latency does not run ${name}`,
    why: `Its prompts are token ids below ${promptTokenIds}, and the vocabulary has ${size}.`,
    fix: 'Leave --engine-arg via=bench out: stepping the engine draws ids that the model has.',
  });
}

/** @throws E_USAGE without a tokenizer, which `vllm bench throughput` needs for its prompts */
function promptTokenizer(model: ChosenModel, args: Record<string, string>): string | null {
  if (args['tokenizer'] !== undefined) return null;
  const tokenizer = tokenizerOf(model);
  if (tokenizer !== null) return tokenizer;
  throw new InferscopeError('E_USAGE', {
    what: `${model.name} has no tokenizer, and vllm bench throughput makes its prompts with one`,
    why: 'No tokenizer files are next to it. Stepping the engine needs none, since its prompts are token ids.',
    fix: 'Leave --engine-arg via=bench-throughput out, or add --engine-arg tokenizer=FOLDER.',
  });
}

function checkRequest({ url, threads }: EngineRequest, via: string): void {
  if (!modes.includes(via as (typeof modes)[number])) {
    throw new InferscopeError('E_USAGE', {
      what: `unknown vLLM mode: via=${via}`,
      why: `It is one of ${modes.join(', ')}.`,
      fix: 'Leave via out: the engine is stepped in a separate process.',
    });
  }
  if (url !== null) {
    throw new InferscopeError('E_USAGE', {
      what: '--url cannot be given with --engine vllm',
      why: 'This engine starts vLLM itself.',
      fix: 'For a running server: --engine openai --url URL',
    });
  }
  if (threads !== null) {
    throw new InferscopeError('E_USAGE', {
      what: '--threads cannot be chosen with --engine vllm',
      why: 'vLLM chooses the threads of its workers.',
      fix: 'Leave --threads out.',
    });
  }
}

function contextOf({ config }: ChosenModel, args: Record<string, string>): number | null {
  const requestedLen = Number(args['max_model_len'] ?? args['max-model-len'] ?? Number.NaN);
  const modelLen = config?.['max_position_embeddings'];
  if (Number.isFinite(requestedLen)) return requestedLen;
  return typeof modelLen === 'number' ? modelLen : null;
}

function workloadOf(
  model: ChosenModel,
  { engineArgs, dtype }: EngineRequest,
  version: string,
  device: string,
): PreparedEngine['workload'] {
  return {
    model:
      model.config === null
        ? null
        : {
            name: model.name,
            config: model.config,
            dtype: dtype ?? 'auto',
            quantization: engineArgs['quantization'] ?? null,
            weights: model.weights,
            num_parameters: null,
            weight_bytes: null,
          },
    engine: { name: 'vllm', version, options: { ...engineArgs } },
    device,
    threads: null,
    batch_size: null,
    input_len: null,
    output_len: null,
    tensor_parallel_size: Number(engineArgs['tensor_parallel_size'] ?? 1),
  };
}

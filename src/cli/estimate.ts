import { type Command, Option } from 'commander';
import type { EstimateOptions } from '../facts/estimate/memory.js';
import { memoryEngines, type MemoryEngine } from '../llm/memory-request.js';
import { kvDTypeNamed, schemeNamed } from '../llm/memory-storage.js';
import type { Document } from '../model/document.js';
import type { EstimateResult } from '../model/documents/estimate.js';
import { parseDType } from '../model/dtype.js';
import { InferscopeError } from '../model/errors.js';
import { sizesParser } from './bench-options.js';
import { parseGpuMemoryUtilization } from './memory-options.js';
import { examples } from './examples.js';
import { wholeNumberParser } from './numbers.js';
import { print, printDocument, terminalWidth } from './output.js';
import { findGpu } from './estimate-gpu.js';
import { refuseUnused } from './unused-options.js';

export interface EstimateRequest extends EstimateOptions {
  model: string;
  gpu?: string;
}

interface EstimateCommandOptions extends Omit<
  EstimateRequest,
  'model' | 'phase' | 'batchSize' | 'inputLen' | 'outputLen'
> {
  model?: string;
  stage: EstimateOptions['phase'];
  batchSize?: number[];
  inputLen?: number[];
  outputLen?: number[];
  fits?: boolean;
  json?: boolean;
}

export function define(command: Command): void {
  const sizes = (flag: string, what: string) =>
    new Option(`${flag} <n...>`, what).argParser(sizesParser(flag));
  const group = (flag: string, what: string) =>
    new Option(`${flag} <n>`, what).argParser(wholeNumberParser(flag, { min: 1, example: 2 })).default(1);
  command
    .option('--model <name>', 'preset, hub id, folder, config.json, safetensors or GGUF file')
    .option('--layers', 'list every module with parameters, FLOPs, bytes and activation sizes')
    .option('--fits', 'list the bundled models that fit --gpu at each dtype')
    .addOption(sizes('--batch-size', 'batch size; a list gives a table (default: 1)'))
    .addOption(sizes('--input-len', 'prompt tokens per sequence (default: 512; with --layers 128)'))
    .addOption(sizes('--output-len', 'generated tokens per sequence (default: 128)'))
    .addOption(
      sizes('--context-len', 'total tokens per sequence; with --layers tokens already in the KV cache'),
    )
    .option(
      '--stage <kind>',
      'with --layers: prefill (the prompt) or decode (one token per sequence)',
      parseStage,
      'prefill',
    )
    .option(
      '--dtype <dtype>',
      'dtype of weights (default: torch_dtype of config.json, else float16)',
      parseDType,
    )
    .option(
      '--quantization <scheme>',
      'quantization of linear layers: fp8, awq, gptq, nvfp4, bnb-nf4, gguf-q4_k …',
      schemeNamed,
    )
    .option(
      '--kv-cache-dtype <dtype>',
      'dtype of the KV cache: auto, fp8 or a dtype (default: auto)',
      kvDTypeNamed,
    )
    .addOption(group('--tensor-parallel-size', 'GPUs that each layer is split over'))
    .addOption(group('--pipeline-parallel-size', 'GPUs that the layers are distributed over'))
    .addOption(group('--expert-parallel-size', 'GPUs that the experts are distributed over'))
    .option('--gpu <name>', 'GPU (A10G, H200, …) or memory size (24GiB) to check the fit')
    .option(
      '--gpu-memory-utilization <share>',
      'vLLM: share of GPU memory to use (default: 0.9)',
      parseGpuMemoryUtilization,
    )
    .option('--engine <name>', `${memoryEngines.join(', ')}`, parseEngine, 'transformers')
    .option(
      '--max-model-len <n>',
      'vLLM: maximum sequence length',
      wholeNumberParser('--max-model-len', { min: 1, example: 8192 }),
    )
    .option('--json', 'print one inferscope/estimate document (with --fits inferscope/estimate-fits)')
    .addHelpText(
      'after',
      examples(
        [
          'inferscope estimate --model llama-3.1-8b --gpu A10G --batch-size 1,8,32',
          'show the memory breakdown and the context and batch that fit',
        ],
        ['inferscope estimate --gpu A10G --fits', 'list the models that fit this GPU, without downloads'],
      ),
    )
    .action((options: EstimateCommandOptions) => run(options, command));
}

/** Name of this machine's first GPU; null if no driver reports one. */
async function firstGpuName(): Promise<string | null> {
  const { openGpus } = await import('../capture/telemetry-gpus.js');
  const { gpus } = await openGpus();
  const name = gpus?.devices[0]?.name ?? null;
  gpus?.close();
  return name;
}

/** Rejects options that the engine or the output mode ignores. */
function refuseIgnoredOptions(
  command: Command,
  { engine, fits, layers, stage, contextLen }: EstimateCommandOptions,
): void {
  if (fits) {
    refuseUnused(
      command,
      ['model', 'layers', 'stage', ...placement, 'dtype', 'quantization', 'kvCacheDtype'],
      {
        why: '--fits compares all bundled models at each dtype on one GPU.',
        fix: 'Remove it, or remove --fits.',
      },
    );
    if (engine === 'onnx')
      refuseUnused(command, ['engine'], {
        why: 'The embedded engine runs on the CPU, and --fits compares models on a GPU.',
        fix: 'Use --engine vllm or --engine transformers.',
      });
  }
  if (layers) {
    refuseUnused(command, ['outputLen', 'gpu', 'engine', ...placement], {
      why: '--layers shows the work of one prefill or decode step, without memory, engine and GPU.',
      fix: 'Remove it, or remove --layers.',
    });
    if (contextLen && stage === 'decode')
      refuseUnused(command, ['inputLen'], {
        why: 'A decode step processes one token per sequence after --context-len tokens.',
        fix: 'Remove it, or remove --context-len.',
      });
  }
  if (engine !== 'vllm')
    refuseUnused(command, ['gpuMemoryUtilization', 'maxModelLen'], {
      why: `Only vLLM has this option; the estimate is for ${engine}.`,
      fix: 'Add --engine vllm.',
    });
  if (engine === 'onnx')
    refuseUnused(command, ['gpu'], {
      why: 'The embedded engine runs on the CPU.',
      fix: 'Remove it, or use --engine vllm or --engine transformers.',
    });
  if (engine === 'onnx')
    refuseUnused(command, ['quantization', 'kvCacheDtype'], {
      why: 'The embedded engine quantizes with --dtype int4 and stores the KV cache in float32.',
      fix: 'Remove it, or use --engine vllm or --engine transformers.',
    });
  if (!layers)
    refuseUnused(command, ['stage'], { why: 'It applies to --layers only.', fix: 'Add --layers.' });
  if (contextLen && !layers)
    refuseUnused(command, ['inputLen', 'outputLen'], {
      why: '--context-len is the sum of prompt and output.',
      fix: 'Remove it, or remove --context-len.',
    });
}

/** Options of where a model runs: parallelism and limits of an engine. */
const placement = [
  'tensorParallelSize',
  'pipelineParallelSize',
  'expertParallelSize',
  'gpuMemoryUtilization',
  'maxModelLen',
];

async function run(commandOptions: EstimateCommandOptions, command: Command): Promise<void> {
  refuseIgnoredOptions(command, commandOptions);
  const { json, fits, layers, gpu, model } = commandOptions;
  const options = {
    ...commandOptions,
    phase: commandOptions.stage,
    batchSize: commandOptions.batchSize ?? [1],
    inputLen: commandOptions.inputLen ?? [layers ? 128 : 512],
    outputLen: commandOptions.outputLen ?? [128],
  };
  if (fits) {
    const name = gpu ?? (await firstGpuName());
    if (name === null) {
      throw missingFlag('--gpu', '--fits needs a GPU, and this machine has none.', '--gpu A10G --fits');
    }
    const { estimateFits } = await import('../facts/estimate/fits.js');
    const document = estimateFits(findGpu(name), options);
    if (json) return printDocument(document);
    const { terminalView } = await import('../render/terminal/view.js');
    const { viewOf } = await import('../views/registry.js');
    const view = await viewOf({ kind: 'estimate-fits', document });
    return print(terminalView(view, { width: terminalWidth() }));
  }
  if (model === undefined) {
    throw missingFlag(
      '--model',
      'An estimate needs a model.',
      '--model llama-3.1-8b, or --gpu A10G --fits for all bundled models',
    );
  }
  const estimate = await estimateDocument({ ...options, model });
  if (json) return printDocument(estimate);
  const { terminalView } = await import('../render/terminal/view.js');
  const { viewOf } = await import('../views/registry.js');
  print(terminalView(await viewOf({ kind: 'estimate', document: estimate }), { width: terminalWidth() }));
}

/**
 * Estimates a named model on a named GPU. Loads no weights; reads only file headers.
 * @throws E_MODEL_NOT_FOUND, E_MODEL_CONFIG, E_MODEL_ARCHITECTURE, E_MODEL_FILE, E_MODEL_ACCESS, E_SERVER_UNREACHABLE,
 *   E_DTYPE, E_LENGTHS, E_USAGE
 */
export async function estimateDocument(options: EstimateRequest): Promise<Document<EstimateResult>> {
  const { findSizedModel } = await import('../engines/model-files/find-model.js');
  const { estimate } = await import('../facts/estimate/estimate.js');
  if (options.engine === 'onnx') {
    const { graphDType } = await import('../engines/onnx/graph-dtype.js');
    graphDType(options.dtype);
  }
  const model = await findSizedModel(options.model);
  return estimate(model, options.gpu === undefined ? null : findGpu(options.gpu), options);
}

function missingFlag(flag: string, why: string, example: string): InferscopeError {
  return new InferscopeError('E_USAGE', {
    what: `${flag} is missing`,
    why,
    fix: `Type for example: inferscope estimate ${example}`,
  });
}

function parseStage(text: string): EstimateOptions['phase'] {
  if (text === 'prefill' || text === 'decode') return text;
  throw new InferscopeError('E_USAGE', {
    what: `unknown stage "${text}"`,
    why: 'The stages are prefill (reads the prompt) and decode (generates one token per sequence).',
    fix: 'Type --stage prefill or --stage decode.',
  });
}

function parseEngine(text: string): MemoryEngine {
  const found = memoryEngines.find((name) => name === text);
  if (found) return found;
  throw new InferscopeError('E_USAGE', {
    what: `unknown engine "${text}"`,
    why: `Memory in addition to weights is known for ${memoryEngines.join(', ')}.`,
    fix: 'Type for example: --engine vllm',
  });
}

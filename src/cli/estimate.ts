import type { Command } from 'commander';
import { readArchitecture, type Architecture } from '../llm/architecture.js';
import { kvBytesPerToken } from '../llm/kv-cache.js';
import { layerTable } from '../llm/layers.js';
import { countParameters } from '../llm/parameters.js';
import { declaredDType, declaredWeights, quantizedWeights, type SchemeName } from '../llm/quantization.js';
import type { StageShape } from '../llm/shape.js';
import { floatStorage, weightBytes, type Storage } from '../llm/storage.js';
import { document, type Document, type Issue } from '../model/document.js';
import {
  estimateModuleSchema,
  type EstimateLayers,
  type EstimateResult,
} from '../model/documents/estimate.js';
import { parseDType, type DType } from '../model/dtype.js';
import { InferscopeError } from '../model/errors.js';
import { layersSummary } from '../report/terminal/layers.js';
import { examples } from './examples.js';
import { findModel } from './find-model.js';
import { wholeNumber } from './numbers.js';
import { print, printDocument, terminalWidth } from './output.js';

export interface EstimateOptions {
  model: string;
  layers?: boolean;
  batchSize: number;
  inputLen: number;
  contextLen?: number;
  phase: 'prefill' | 'decode';
  dtype?: DType;
}

export function define(command: Command): void {
  command
    .requiredOption('--model <name>', 'preset, config.json, or a folder that holds one')
    .option('--layers', 'every module: parameters, FLOPs, bytes, activation sizes')
    .option('--batch-size <n>', 'sequences', wholeNumber('--batch-size', 1, 8), 1)
    .option('--input-len <n>', 'prompt tokens of a sequence', wholeNumber('--input-len', 1, 128), 128)
    .option(
      '--context-len <n>',
      'tokens in the KV cache before (default: 0; in decode the prompt)',
      wholeNumber('--context-len', 0, 1024),
    )
    .option('--phase <phase>', 'prefill (the prompt) or decode (one token a sequence)', parsePhase, 'prefill')
    .option('--dtype <dtype>', "of weights (default: the config's torch_dtype, else float16)", parseDType)
    .option('--json', 'print one inferscope/estimate document')
    .addHelpText(
      'after',
      examples(
        ['inferscope estimate --model llama-3.1-8b --layers', 'where its parameters, FLOPs and bytes are'],
        [
          'inferscope estimate --model path/to/config.json --layers --phase decode',
          'one decode step of your model after a prompt of 128 tokens',
        ],
      ),
    )
    .action(async (options: EstimateOptions & { json?: boolean }) => {
      const made = await estimate(options);
      if (options.json) printDocument(made);
      else print(layersSummary(made, { width: terminalWidth() }));
    });
}

/**
 * Arithmetic of a model that is not run: nothing is measured, loaded or downloaded.
 * @throws E_MODEL_NOT_FOUND, E_MODEL_CONFIG, E_MODEL_ARCHITECTURE, E_DTYPE, E_LENGTHS
 */
export async function estimate(options: EstimateOptions): Promise<Document<EstimateResult>> {
  const { name, config } = await findModel(options.model);
  const architecture = readArchitecture(config);
  const storage = storageOf(config, options.dtype);
  const { total, active, embedding, lm_head } = countParameters(architecture);
  const result: EstimateResult = {
    model: {
      name,
      model_type: architecture.modelType,
      family: architecture.family,
      layers: architecture.layers.length,
      hidden_size: architecture.hiddenSize,
      vocab_size: architecture.vocabSize,
    },
    weight_format: storage.weights.name,
    activation_dtype: storage.activations,
    kv_cache_dtype: storage.kvCache,
    parameters: { total, active, embedding, lm_head },
    weight_bytes: weightBytes(architecture, storage).total,
    kv_cache_bytes_per_token: kvBytesPerToken(architecture, storage.kvCache),
    layers: options.layers ? layersOf(architecture, shapeOf(options), storage) : null,
  };
  return document('estimate', '1.0', result, issuesOf(config, architecture, options));
}

function layersOf(architecture: Architecture, shape: StageShape, storage: Storage): EstimateLayers {
  const { groups, outside, total } = layerTable(architecture, shape, storage);
  return {
    phase: shape.phase,
    batch_size: shape.batchSize,
    new_tokens: shape.newTokens,
    context_tokens: shape.contextTokens,
    groups,
    // A row of the table has more than the document says of a module.
    outside: outside.map((row) => estimateModuleSchema.parse(row)),
    total,
  };
}

function shapeOf({ phase, batchSize, inputLen, contextLen }: EstimateOptions): StageShape {
  const decode = phase === 'decode';
  return {
    phase,
    batchSize,
    newTokens: decode ? 1 : inputLen,
    contextTokens: contextLen ?? (decode ? inputLen : 0),
  };
}

/** Formats of the quantised dtypes; `matmulnbits-int4` is what `profile --dtype int4` runs. */
const schemeOf: Partial<Record<DType, SchemeName>> = {
  int4: 'matmulnbits-int4',
  int8: 'int8-row',
  float8: 'fp8-row',
};

/** Weights as asked for, else as the config declares them; activations and KV cache stay in a float dtype. */
function storageOf(config: Record<string, unknown>, asked: DType | undefined): Storage {
  const float = declaredDType(config) ?? 'float16';
  if (asked === undefined) {
    return {
      weights: declaredWeights(config) ?? floatStorage(float).weights,
      activations: float,
      kvCache: float,
    };
  }
  const scheme = schemeOf[asked];
  if (!scheme) return floatStorage(asked);
  return { weights: quantizedWeights(scheme, float), activations: float, kvCache: float };
}

function parsePhase(text: string): EstimateOptions['phase'] {
  if (text === 'prefill' || text === 'decode') return text;
  throw new InferscopeError('E_USAGE', {
    what: `unknown phase "${text}"`,
    why: 'A model runs in two: prefill reads the prompt, decode makes one token a sequence.',
    fix: 'Type --phase prefill or --phase decode.',
  });
}

function issuesOf(
  config: Record<string, unknown>,
  { partOfLarger }: Architecture,
  { dtype, layers }: EstimateOptions,
): Issue[] {
  const issues: Issue[] = [];
  if (config['quantization_config'] && dtype === undefined && declaredWeights(config) === null) {
    issues.push({
      code: 'quantization_unknown',
      severity: 'warning',
      text: "The config's quantization_config is not known: sizes are those of unquantised weights.",
    });
  }
  if (partOfLarger) {
    issues.push({
      code: 'decoder_only',
      severity: 'info',
      text: 'The config describes more than this decoder (a vision tower …), which is not counted.',
    });
  }
  if (layers !== true) {
    issues.push({
      code: 'memory_calculator_planned',
      severity: 'info',
      text: 'What a whole run needs (activations, runtime, batch) is the memory calculator, which is planned; --layers shows every module.',
    });
  }
  return issues;
}

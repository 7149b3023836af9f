import { copyFileSync, existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { InferscopeError } from '../../model/errors.js';
import type { ChosenModel } from '../transformers/choose-model.js';

/** vLLM finds a model's class by `architectures`, which a config with only dimensions lacks. */
const architectures: Record<string, string> = {
  llama: 'LlamaForCausalLM',
  mistral: 'MistralForCausalLM',
  mixtral: 'MixtralForCausalLM',
  qwen2: 'Qwen2ForCausalLM',
  qwen3: 'Qwen3ForCausalLM',
  qwen3_moe: 'Qwen3MoeForCausalLM',
  gemma: 'GemmaForCausalLM',
  gemma2: 'Gemma2ForCausalLM',
  gemma3_text: 'Gemma3ForCausalLM',
  phi3: 'Phi3ForCausalLM',
  gpt2: 'GPT2LMHeadModel',
  opt: 'OPTForCausalLM',
  deepseek_v3: 'DeepseekV3ForCausalLM',
};

/**
 * config.json as vLLM needs it.
 * @throws E_MODEL_ARCHITECTURE if its class is unknown
 */
export function vllmConfig(name: string, config: Record<string, unknown>): Record<string, unknown> {
  if (Array.isArray(config['architectures']) && config['architectures'].length > 0) return config;
  const architecture = architectures[String(config['model_type'])];
  if (architecture !== undefined) return { ...config, architectures: [architecture] };
  throw new InferscopeError('E_MODEL_ARCHITECTURE', {
    what: `vLLM's class for ${name} is not known`,
    why: `Its config.json has no "architectures", and model_type ${String(config['model_type'])} does not identify it.`,
    fix: 'Add "architectures" to the config.json, as the published one has it.',
  });
}

/**
 * The `model` argument for vLLM: trained models by folder or hub id; random weights as a folder below `scratch` with
 * the config.json and the tokenizer of the model's folder, if any.
 */
export function placeModel({ name, source, config, weights }: ChosenModel, scratch: string): string {
  if (weights === 'trained' || config === null) return source.endsWith('.json') ? dirname(source) : source;
  const folder = join(scratch, 'model');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'config.json'), JSON.stringify(vllmConfig(name, config), null, 2));
  const from = folderOf(source);
  for (const file of from === null ? [] : tokenizerFiles(from))
    copyFileSync(join(from!, file), join(folder, file));
  return folder;
}

/**
 * The tokenizer for prompts of vLLM's own commands: next to the model, or that of its hub id; null if there are only
 * dimensions.
 */
export function tokenizerOf({ source }: ChosenModel): string | null {
  const from = folderOf(source);
  if (from !== null) return tokenizerFiles(from).length > 0 ? from : null;
  return source.includes('/') ? source : null;
}

/** Folder of a model on this machine; null for presets and hub ids. */
function folderOf(source: string): string | null {
  if (!existsSync(source)) return null;
  return statSync(source).isDirectory() ? source : dirname(source);
}

const tokenizerFiles = (folder: string): string[] =>
  readdirSync(folder).filter((name) =>
    /^(tokenizer[\w.]*\.(json|model)|vocab\.\w+|merges\.txt|special_tokens_map\.json|added_tokens\.json)$/.test(
      name,
    ),
  );

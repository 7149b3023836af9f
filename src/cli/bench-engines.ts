import { join } from 'node:path';
import { closest } from 'fastest-levenshtein';
import { engineNames, type Engine, type EngineName } from '../model/engine.js';
import { InferscopeError } from '../model/errors.js';
import { formatPart } from '../vocabulary/format.js';

export interface EngineContext {
  /** Cache folder: its content can be recreated. */
  cacheDir: string;
  seed: number;
  /** Shows progress while a model is written or another slow step runs before the first launch. */
  onProgress: (step: string, detail: string) => void;
}

interface Entry {
  /** Model used without --model; null: the engine chooses. */
  model: string | null;
  load: (context: EngineContext) => Promise<Engine>;
}

/** Engines are loaded on demand. */
const entries: Record<EngineName, Entry> = {
  onnx: {
    model: 'llama-24m',
    async load({ cacheDir, seed, onProgress }) {
      const { onnxEngine } = await import('../capture/bench/onnx-engine.js');
      return onnxEngine({
        cacheDir: join(cacheDir, 'models'),
        seed,
        onProgress: ({ doneBytes, totalBytes }) =>
          onProgress('writing the model', formatPart(doneBytes, totalBytes)),
      });
    },
  },
  transformers: {
    model: 'tinyllama-1.1b',
    load: async () => (await import('../engines/transformers/engine.js')).transformersEngine,
  },
  vllm: {
    model: 'tinyllama-1.1b',
    load: async () => (await import('../engines/vllm/engine.js')).vllmEngine,
  },
  openai: {
    model: null,
    load: async () => (await import('../engines/openai/engine.js')).openaiEngine,
  },
};

/** @throws E_USAGE for an unknown name */
export function parseEngineName(text: string): EngineName {
  const found = engineNames.find((name) => name === text.trim().toLowerCase());
  if (found) return found;
  throw new InferscopeError('E_USAGE', {
    what: `unknown engine "${text}"`,
    why: `Engines are ${engineNames.join(', ')}.`,
    fix: `Type for example: --engine ${closest(text.toLowerCase(), [...engineNames])}`,
  });
}

export const defaultModel = (name: EngineName): string | null => entries[name].model;

export async function loadEngine(name: EngineName, context: EngineContext): Promise<Engine> {
  return entries[name].load(context);
}

import type { FileWeights } from './safetensors.js';

/** Sizes of a model's weights from the headers of its files. */
export interface HeaderWeights extends FileWeights {
  format: 'safetensors' | 'gguf';
  /** Which files, in words. */
  source: string;
}

export interface NamedModel {
  name: string;
  config: Record<string, unknown>;
}

/** A model with its files looked at, too. */
export interface SizedModel extends NamedModel {
  /** Exact sizes from the files' headers; null when there are none. */
  weights: HeaderWeights | null;
  /** Why there are none though there should be. */
  withoutWeights: string | null;
}

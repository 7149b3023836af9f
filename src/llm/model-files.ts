import type { FileWeights } from './safetensors.js';

/** Sizes of a model's weights from the headers of its files. */
export interface HeaderWeights extends FileWeights {
  format: 'safetensors' | 'gguf';
  /** Describes the files for a message. */
  source: string;
}

export interface NamedModel {
  name: string;
  config: Record<string, unknown>;
}

/** A model with the sizes stated by its files. */
export interface SizedModel extends NamedModel {
  /** Exact sizes from the files' headers; null without any. */
  weights: HeaderWeights | null;
  /** Why they could not be read. */
  withoutWeights: string | null;
}

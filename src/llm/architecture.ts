/**
 * pre: norm before attention and before the MLP. sandwich: before and after both (Gemma 2, 3). parallel: one norm feeds
 * attention and MLP side by side (phi-2); parallel-two: one norm each (GPT-NeoX). post: after attention and after the
 * MLP, before (OLMo 2) or after (OPT-350m) the residual addition. single: before the mixer, without an MLP (Mamba).
 */
export type NormPlacement = 'pre' | 'sandwich' | 'parallel' | 'parallel-two' | 'post' | 'single';

/** Multi-head, grouped-query (kvHeadCount < headCount) or multi-query (kvHeadCount = 1) attention. */
export interface GroupedAttention {
  kind: 'grouped';
  headCount: number;
  kvHeadCount: number;
  headDim: number;
  /** Rotated dimensions of a head; 0 with learned positions. */
  rotaryDim: number;
  qkvBias: boolean;
  outputBias: boolean;
  qkNorm: 'none' | 'rmsnorm' | 'layernorm';
  /** One norm over all heads together (OLMo 2, MiniMax-M2), instead of one shared by the heads. */
  qkNormWide: boolean;
  /** The query projection also produces a gate of the output's width (Qwen3-Next). */
  outputGate: boolean;
  /** A learned logit for each head in the softmax (gpt-oss). */
  sinks: boolean;
  /** Keys that a query sees, including itself; null: all previous ones. */
  window: number | null;
  /** The window is a chunk: a query sees only the keys of its own chunk (Llama 4). */
  chunked: boolean;
  /** Keys and values come from an earlier layer (the last layers of Gemma 3n). */
  sharedKv: boolean;
  /**
   * Keys that a query sees: the previous ones and its own (default), all of its sequence (an encoder), or those of the
   * encoder's output (cross-attention).
   */
  keys?: 'previous' | 'all' | 'source';
  /** Whether the key projection has a bias; default: as qkvBias (Whisper has none). */
  keyBias?: boolean;
  /** Elements of a table of biases by distance, which the scores add (T5). */
  positionBias?: number;
}

/** Multi-head latent attention (DeepSeek-V2 paper, arXiv 2405.04434, section 2.1). */
export interface LatentAttention {
  kind: 'latent';
  headCount: number;
  /** Rank of the compressed query; null if queries are projected directly. */
  queryRank: number | null;
  kvRank: number;
  nopeDim: number;
  ropeDim: number;
  valueDim: number;
  bias: boolean;
  window: null;
}

/**
 * A mixer with a state of fixed size instead of a KV cache: gated DeltaNet (arXiv 2412.06464), Mamba (arXiv
 * 2312.00752), Mamba-2 (arXiv 2405.21060). Sizes are per layer.
 */
export interface RecurrentMixer {
  kind: 'recurrent';
  form: 'gated DeltaNet' | 'Mamba' | 'Mamba-2';
  /** Units that a tensor-parallel group divides: value heads, or channels without heads (Mamba). */
  headCount: number;
  /** Rows of the input projection from hiddenSize. */
  inRows: number;
  /** Columns of the output projection back to hiddenSize. */
  innerSize: number;
  projectionBias: boolean;
  convChannels: number;
  convKernel: number;
  convBias: boolean;
  /** Mamba's projections between convolution and scan: inner size -> rank + 2 states, rank -> inner size. */
  inner: { rank: number; stateSize: number } | null;
  /** Elements of decays, step biases, skips and norms. */
  vectorElements: number;
  /** Elements of a sequence's state: the scan's, and the last inputs of the convolution. */
  stateElements: number;
  convStateElements: number;
  /** FLOPs per token for state update and readout. */
  scanFlops: number;
  window: null;
}

export interface DenseMlp {
  kind: 'dense';
  gated: boolean;
  intermediateSize: number;
  bias: boolean;
}

export interface MoeMlp {
  kind: 'moe';
  expertCount: number;
  expertsPerToken: number;
  intermediateSize: number;
  /** Intermediate size of all shared experts together; 0 without. */
  sharedIntermediateSize: number;
  sharedGate: boolean;
  routerBias: boolean;
  /** Biases of the router and of every expert (gpt-oss). */
  bias: boolean;
}

/** A layer with only a mixer (Mamba). */
export interface NoMlp {
  kind: 'none';
}

/** A weight of only one family (Gemma 3n's AltUp, LAuReL and per-layer embeddings). */
export interface ExtraTensor {
  name: string;
  kind: 'linear' | 'vector' | 'embedding';
  rows: number;
  columns: number;
}

export interface Layer {
  index: number;
  /** A layer of the encoder. Those come first. */
  isEncoder?: boolean;
  attention: GroupedAttention | LatentAttention | RecurrentMixer;
  /** Attention to the encoder's output, after the layer's own. */
  cross?: GroupedAttention;
  mlp: DenseMlp | MoeMlp | NoMlp;
  extra: readonly ExtraTensor[];
}

/** Parts of an encoder outside its layers. */
export interface Encoder {
  /** Rows of its position table; 0 without. */
  positionRows: number;
  /** Convolutions from audio features to its input, two frames per token (Whisper); null: it embeds token ids. */
  convolutions: { melBins: number; kernel: number } | null;
}

/** `count` equal weights of a vision tower or its projector; a bias has as many elements as rows. */
export interface VisionTensor {
  name: string;
  kind: 'linear' | 'vector' | 'embedding';
  rows: number;
  columns: number;
  bias: number;
  count: number;
}

/** A vision tower with its projector to the decoder's width. */
export interface Vision {
  tensors: readonly VisionTensor[];
  /** Tokens of an image in the prompt; null: by the size of the image. */
  tokensPerImage: number | null;
}

/** The dimensions of a transformer that its arithmetic needs. */
export interface Architecture {
  modelType: string;
  family: string;
  hiddenSize: number;
  vocabSize: number;
  /** Null if the config does not say. */
  maxPositions: number | null;
  norm: 'rmsnorm' | 'layernorm';
  norms: NormPlacement;
  finalNorm: boolean;
  /** A norm of the embeddings, before the first layer of each stack that embeds token ids (BART). */
  embeddingNorm?: boolean;
  /** Width of the token embedding; differs from hiddenSize in OPT-350m, which projects in and out. */
  embeddingDim: number;
  /** Rows of a learned position table; 0 with rotary positions. */
  positionRows: number;
  tiedEmbeddings: boolean;
  lmHeadBias: boolean;
  /** What an encoder-decoder model has before its encoder's layers. */
  encoder?: Encoder;
  /** Counted in weights, not in the work of a stage. */
  vision?: Vision;
  layers: Layer[];
  /** Weights outside the layers. */
  extra: readonly ExtraTensor[];
  /** Config keys that may change sizes and that this family does not read. */
  unreadKeys: readonly string[];
  /** True if the config describes more than this decoder (a vision tower …), which is not counted here, except `vision`. */
  partOfLarger: boolean;
}

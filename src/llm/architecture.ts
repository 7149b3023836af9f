/**
 * pre: norm before attention and before the MLP. sandwich: before and after both (Gemma 2, 3). parallel: one norm
 * feeds attention and MLP side by side (phi-2); parallel-two: each has its own (GPT-NeoX). post: after attention and
 * after the MLP, before (OLMo 2) or after (OPT-350m) the residual addition. single: before the mixer, with no MLP (Mamba).
 */
export type NormPlacement = 'pre' | 'sandwich' | 'parallel' | 'parallel-two' | 'post' | 'single';

/** Multi-head, grouped-query (kvHeadCount < headCount) or multi-query (kvHeadCount = 1) attention. */
export interface GroupedAttention {
  kind: 'grouped';
  headCount: number;
  kvHeadCount: number;
  headDim: number;
  /** Dimensions of a head that rotate; 0 with learned positions. */
  rotaryDim: number;
  qkvBias: boolean;
  outputBias: boolean;
  qkNorm: 'none' | 'rmsnorm' | 'layernorm';
  /** One norm over all heads together (OLMo 2, MiniMax-M2), not one that the heads share. */
  qkNormWide: boolean;
  /** The query projection makes a gate of the output's width as well (Qwen3-Next). */
  outputGate: boolean;
  /** A learned logit for each head in the softmax (gpt-oss). */
  sinks: boolean;
  /** Keys a query sees, itself included; null is all before it. */
  window: number | null;
  /** The window is a chunk: a query sees the keys of its own chunk only (Llama 4). */
  chunked: boolean;
  /** Keys and values are those of an earlier layer (the last layers of Gemma 3n). */
  sharedKv: boolean;
}

/** Multi-head latent attention (DeepSeek-V2 paper, arXiv 2405.04434, section 2.1). */
export interface LatentAttention {
  kind: 'latent';
  headCount: number;
  /** Rank of the compressed query; null when queries are projected directly. */
  queryRank: number | null;
  kvRank: number;
  nopeDim: number;
  ropeDim: number;
  valueDim: number;
  bias: boolean;
  window: null;
}

/**
 * A mixer with a state of fixed size in place of a cache of keys and values: gated DeltaNet (arXiv 2412.06464), Mamba (arXiv
 * 2312.00752), Mamba-2 (arXiv 2405.21060). Sizes are of one layer.
 */
export interface RecurrentMixer {
  kind: 'recurrent';
  form: 'gated DeltaNet' | 'Mamba' | 'Mamba-2';
  /** What a tensor-parallel group divides: value heads, or channels where there are no heads (Mamba). */
  headCount: number;
  /** Rows of the input projection, from the model's width. */
  inRows: number;
  /** Columns of the output projection, back to the model's width. */
  innerSize: number;
  projectionBias: boolean;
  convChannels: number;
  convKernel: number;
  convBias: boolean;
  /** Mamba's projections between convolution and scan: inner size -> rank + 2 states, rank -> inner size. */
  inner: { rank: number; stateSize: number } | null;
  /** Decays, step biases, skips and norms: elements. */
  vectorElements: number;
  /** Elements of a sequence's state: that of the scan, and the last inputs of the convolution. */
  stateElements: number;
  convStateElements: number;
  /** FLOPs of one token's state update and readout. */
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

/** A layer that is a mixer only (Mamba). */
export interface NoMlp {
  kind: 'none';
}

/** A weight that only one family has (Gemma 3n's AltUp, LAuReL and per-layer embeddings). */
export interface ExtraTensor {
  name: string;
  kind: 'linear' | 'vector' | 'embedding';
  rows: number;
  columns: number;
}

export interface Layer {
  index: number;
  attention: GroupedAttention | LatentAttention | RecurrentMixer;
  mlp: DenseMlp | MoeMlp | NoMlp;
  extra: readonly ExtraTensor[];
}

/** A decoder-only transformer, as far as its arithmetic goes. */
export interface Architecture {
  modelType: string;
  family: string;
  hiddenSize: number;
  vocabSize: number;
  /** null when the config does not tell. */
  maxPositions: number | null;
  norm: 'rmsnorm' | 'layernorm';
  norms: NormPlacement;
  finalNorm: boolean;
  /** Width of the token embedding; differs from hiddenSize in OPT-350m, which projects in and out. */
  embeddingDim: number;
  /** Rows of a learned position table; 0 with rotary positions. */
  positionRows: number;
  tiedEmbeddings: boolean;
  lmHeadBias: boolean;
  layers: Layer[];
  /** Outside the layers. */
  extra: readonly ExtraTensor[];
  /** Keys of the config that may change sizes and that this family does not read. */
  unreadKeys: readonly string[];
  /** True when the config describes more than this decoder (a vision tower …) that is not counted here. */
  partOfLarger: boolean;
}

import type { StageKind } from '../../model/record.js';
import { isForeachKernel, isTrainingKernel, isOptimizerKernel } from '../kernel-classes/training.js';
import { kernelLabel } from '../kernel-classes/classify.js';

/** Kernels of one process on its busiest device, in order of start. */
export interface KernelSequence {
  rows: number;
  /** Index in `launches`. */
  code: Int32Array;
  start_ns: Float64Array;
  dur_ns: Float64Array;
  /** Distinct names and grids ("x,y,z"). */
  launches: readonly { name: string; grid: string | null }[];
}

/** A step found in a sequence: kernels `first` to `last`, both inclusive. */
export interface InferredStep {
  first: number;
  last: number;
  kind: StageKind;
  /** Tokens that it computes, if every row-wise kernel has one block per row; null: unknown. */
  tokens: number | null;
}

type InferredSteps =
  | {
      steps: InferredStep[];
      /** Share of the kernels between the first and the last step that belong to steps, 0 to 1. */
      confidence: number;
    }
  /** Why no steps were found; completes "No steps were inferred: …". */
  | { why: string };

/** With fewer steps, a repetition may be chance. */
const minSteps = 3;
/**
 * Products of a model with two layers. With fewer, the repeated part may be a layer or a benchmark of one operation.
 */
const minProducts = 8;
/** Minimum attentions per step: a part with one attention is a layer, for example between two top-k of a router. */
const minAttentions = 2;
/** Share of the kernel time that the steps must cover. */
const minCoverage = 0.5;
/** Share of the kernels between the first and the last step that must belong to steps. */
const minConfidence = 0.8;
/** A prompt takes longer than a decode step by at least this factor, or launches more blocks by the second one. */
const prefillRatio = 1.5;
const prefillBlocks = 4;

export const noSeparator =
  'no sampling, embedding or optimizer kernel separates passes with equal numbers of products';

/** Whether kernels of these names can separate steps: without one, the sequence need not be read. */
export const separatesSteps = (names: readonly string[]): boolean =>
  names.some((name) => isTrainingKernel(name) || ['sampling', 'embedding'].includes(kernelLabel(name).class));

/**
 * Finds the steps of a program that marks none. A step ends with kernels that a model runs once per pass (the optimizer
 * in training, sampling in generation), or starts with the lookup of embeddings. Passes between two of them must
 * contain the same number of products and attentions. Nothing is inferred without such a period, or if two periods
 * disagree.
 */
export function inferSteps(sequence: KernelSequence): InferredSteps {
  const roles = rolesOf(sequence);
  const training = roles.optimizer.includes(1) || roles.backward.includes(1);
  if (training) return trainingSteps(sequence, roles);
  if (!roles.attention.includes(1)) return { why: 'no attention kernels, so what repeats may be anything' };
  const steps = anchors(sequence, roles).flatMap((anchor) => {
    const passes = passesOf(sequence, roles, anchor);
    return passes ? [passes] : [];
  });
  if (steps.length === 0) return { why: noSeparator };
  // The shortest period: a kernel that runs once per request also separates equal parts.
  steps.sort((a, b) => b.passes.length - a.passes.length || b.coverage - a.coverage);
  const best = steps[0]!;
  const conflicting = steps.find(
    ({ products }) =>
      Math.abs(products - best.products) > 0.1 * best.products &&
      products % best.products > 0.1 * best.products,
  );
  if (conflicting)
    return {
      why: `two periods fit: passes of ${best.products} and of ${conflicting.products} products`,
    };
  const kinds = passKinds(sequence, roles, best.passes);
  return {
    steps: best.passes.map((pass, i) => ({
      ...pass,
      kind: kinds[i]!,
      tokens: tokensOf(sequence, roles, pass),
    })),
    confidence: best.confidence,
  };
}

/** Flags by launch code. */
interface Roles {
  /** Without split-K reductions, of which a product may have one or none. */
  product: Uint8Array;
  gemv: Uint8Array;
  attention: Uint8Array;
  /** Attention of one new token per sequence. */
  decodeAttention: Uint8Array;
  sampling: Uint8Array;
  embedding: Uint8Array;
  optimizer: Uint8Array;
  backward: Uint8Array;
  /** Rows, for kernels with one block per row; 0: another kernel. */
  rowBlocks: Float64Array;
  /** Blocks of kernels that do more work with more tokens: all except products and attention. */
  blocks: Float64Array;
}

const decodeNames =
  /decode|paged_attention|pagedattention|mmha|masked_multihead|xqa|splitkv|split_kv|pa_fwd|flash_fwd_split/i;
const gemvNames = /gemv|dot_kernel|gemmk1|gemmSN/i;
/** Norms and gated activations that launch one block per token. */
const rowKernels =
  /vectorized_layer_norm_kernel|rms_norm_kernel|fused_add_rms_norm|RMSNormKernel|act_and_mul_kernel/;

function rolesOf({ launches }: KernelSequence): Roles {
  const n = launches.length;
  const flags = () => new Uint8Array(n);
  const roles: Roles = {
    product: flags(),
    gemv: flags(),
    attention: flags(),
    decodeAttention: flags(),
    sampling: flags(),
    embedding: flags(),
    optimizer: flags(),
    backward: flags(),
    rowBlocks: new Float64Array(n),
    blocks: new Float64Array(n),
  };
  const labels = new Map<string, string>();
  for (const [code, { name, grid }] of launches.entries()) {
    if (!labels.has(name)) labels.set(name, kernelLabel(name).class);
    const label = labels.get(name)!;
    roles.optimizer[code] = Number(isOptimizerKernel(name));
    roles.backward[code] = Number(isTrainingKernel(name) && !isOptimizerKernel(name));
    roles.product[code] = Number(label === 'gemm' && !/split_?k_?reduce/i.test(name));
    roles.gemv[code] = Number(roles.product[code] === 1 && gemvNames.test(name));
    roles.attention[code] = Number(label === 'attention');
    roles.decodeAttention[code] = Number(label === 'attention' && decodeNames.test(name));
    roles.sampling[code] = Number(label === 'sampling');
    roles.embedding[code] = Number(label === 'embedding');
    if (rowKernels.test(name)) roles.rowBlocks[code] = rows(grid);
    if (label !== 'gemm' && label !== 'attention') roles.blocks[code] = allBlocks(grid);
  }
  if (!roles.optimizer.includes(1) && roles.backward.includes(1))
    for (const [code, { name }] of launches.entries()) roles.optimizer[code] = Number(isForeachKernel(name));
  return roles;
}

/** Blocks of a one-dimensional grid; NaN: another grid. */
function rows(grid: string | null): number {
  const [x, y, z] = (grid ?? '').split(',').map(Number);
  return y === 1 && z === 1 && x! > 0 ? x! : Number.NaN;
}

function allBlocks(grid: string | null): number {
  const blocks = (grid ?? '').split(',').reduce((product, size) => product * Number(size), 1);
  return Number.isFinite(blocks) ? blocks : 0;
}

/** Launch codes that separate passes. */
interface Anchor {
  codes: Uint8Array;
  /** They are the last kernels of a pass, not the first. */
  last: boolean;
}

/** Each sampling kernel and each embedding kernel by name, for any grid. */
function anchors({ launches }: KernelSequence, { sampling, embedding }: Roles): Anchor[] {
  const anchorsOf = (flags: Uint8Array, last: boolean): Anchor[] => {
    const names = new Set(launches.flatMap(({ name }, code) => (flags[code] === 1 ? [name] : [])));
    return [...names].map((name) => ({
      codes: Uint8Array.from(launches, (launch, code) => Number(flags[code] === 1 && launch.name === name)),
      last,
    }));
  };
  return [...anchorsOf(sampling, true), ...anchorsOf(embedding, false)];
}

interface Pass {
  first: number;
  last: number;
}

interface Passes {
  passes: Pass[];
  /** GEMMs per pass. */
  products: number;
  coverage: number;
  confidence: number;
}

/** Parts between anchors; anchors without a product between them are one. */
function parts({ rows: n, code }: KernelSequence, product: Uint8Array, { codes, last }: Anchor): Pass[] {
  const ends: number[] = [];
  let products = 1;
  for (let i = 0; i < n; i++) {
    if (product[code[i]!] === 1) products++;
    if (codes[code[i]!] !== 1) continue;
    if (last && products === 0 && ends.length > 0) ends[ends.length - 1] = i;
    else if (products > 0) ends.push(last ? i : i - 1);
    products = 0;
  }
  if (!last) ends.push(n - 1);
  return ends
    .map((end, i) => ({ first: i === 0 ? 0 : ends[i - 1]! + 1, last: end }))
    .filter(({ first, last: end }) => end > first);
}

function passesOf(sequence: KernelSequence, roles: Roles, anchor: Anchor): Passes | null {
  const all = parts(sequence, roles.product, anchor);
  if (all.length < minSteps) return null;
  const counted = all.map((part) => ({ part, ...countsOf(sequence, roles, part) }));
  const products = mode(counted.map((pass) => pass.products));
  if (products < minProducts) return null;
  const alike = counted.filter((pass) => Math.abs(pass.products - products) <= Math.max(1, 0.02 * products));
  if (alike.length < minSteps) return null;
  if (mode(alike.map(({ attentions }) => attentions)) < minAttentions) return null;
  const passes = alike.filter(({ attentions }) => attentions > 0).map(({ part }) => part);
  const first = counted[0]!;
  // Work before the first pass, such as initialization, belongs to no step.
  if (anchor.last && first.products > products && passes[0]?.first === first.part.last + 1)
    passes.unshift(cutFront(sequence, roles, first.part, products));
  return rateOf(sequence, passes, products);
}

function rateOf({ rows: n, dur_ns: dur }: KernelSequence, passes: Pass[], products: number): Passes | null {
  if (passes.length < minSteps) return null;
  let total = 0;
  for (let i = 0; i < n; i++) total += dur[i]!;
  let covered = 0;
  let kernels = 0;
  for (const { first, last } of passes) {
    kernels += last - first + 1;
    for (let i = first; i <= last; i++) covered += dur[i]!;
  }
  const coverage = total > 0 ? covered / total : 0;
  const confidence = kernels / (passes.at(-1)!.last - passes[0]!.first + 1);
  return coverage >= minCoverage && confidence >= minConfidence
    ? { passes, products, coverage, confidence }
    : null;
}

function countsOf({ code }: KernelSequence, { product, attention }: Roles, { first, last }: Pass) {
  let products = 0;
  let attentions = 0;
  for (let i = first; i <= last; i++) {
    products += product[code[i]!]!;
    attentions += attention[code[i]!]!;
  }
  return { products, attentions };
}

/** The end of a part with this number of products, including the kernels before its first product. */
function cutFront(
  { code }: KernelSequence,
  { product }: Roles,
  { first, last }: Pass,
  products: number,
): Pass {
  let remaining = products;
  let i = last;
  for (; i >= first && remaining > 0; i--) remaining -= product[code[i]!]!;
  while (i >= first && product[code[i]!] === 0 && last - i < last - first) i--;
  return { first: i + 1, last };
}

/** The most frequent value; the first one on a tie. */
function mode(values: readonly number[]): number {
  const counts = new Map<number, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts].toSorted((a, b) => b[1] - a[1])[0]?.[0] ?? 0;
}

/**
 * Decode if it is certain: a run of passes with equal product launches after a longer one, products of single rows, or
 * attention kernels for one new token. Other passes are steps of unknown kind.
 */
function passKinds(sequence: KernelSequence, roles: Roles, passes: readonly Pass[]): StageKind[] {
  const { code, dur_ns: dur } = sequence;
  const described = passes.map(({ first, last }) => {
    let hash = 0;
    let ns = 0;
    let blocks = 0;
    const counts = { products: 0, gemv: 0, attention: 0, decode: 0 };
    for (let i = first; i <= last; i++) {
      const launchCode = code[i]!;
      ns += dur[i]!;
      blocks += roles.blocks[launchCode]!;
      counts.gemv += roles.gemv[launchCode]!;
      counts.attention += roles.attention[launchCode]!;
      counts.decode += roles.decodeAttention[launchCode]!;
      if (roles.product[launchCode] !== 1) continue;
      counts.products++;
      hash = (Math.imul(hash, 31) + launchCode) | 0;
    }
    return { hash, ns, blocks, ...counts };
  });
  const usual = mode(described.map(({ hash }) => hash));
  const repeated = described.filter(({ hash }) => hash === usual);
  const median = (valueOf: (pass: (typeof described)[number]) => number) =>
    repeated.map(valueOf).toSorted((a, b) => a - b)[Math.floor(repeated.length / 2)]!;
  const [usualNs, usualBlocks] = [median(({ ns }) => ns), median(({ blocks }) => blocks)];
  const isPrompt = ({ hash, ns, blocks }: (typeof described)[number]) =>
    hash !== usual && (ns >= prefillRatio * usualNs || blocks >= prefillBlocks * usualBlocks);
  const isSmall = (pass: (typeof described)[number]) => !isPrompt(pass);
  const afterPrompt = described.some(
    (pass, i) =>
      isPrompt(pass) &&
      i + minSteps < described.length &&
      described.slice(i + 1, i + 1 + minSteps).every(isSmall),
  );
  const { products, gemv, attention, decode } = repeated[0]!;
  const oneToken = gemv * 2 > products || decode * 2 > attention;
  if (repeated.length < minSteps || !(afterPrompt || oneToken)) return described.map(() => 'other');
  return described.map((pass) => (isPrompt(pass) ? 'prefill' : 'decode'));
}

function tokensOf({ code }: KernelSequence, { rowBlocks }: Roles, { first, last }: Pass): number | null {
  let tokens = 0;
  let passed = 0;
  for (let i = first; i <= last; i++) {
    const blocks = rowBlocks[code[i]!]!;
    if (blocks === 0) continue;
    if (Number.isNaN(blocks) || (tokens > 0 && blocks !== tokens)) return null;
    tokens = blocks;
    passed++;
  }
  return passed >= minAttentions ? tokens : null;
}

/** A training step ends with its optimizer. */
function trainingSteps(sequence: KernelSequence, roles: Roles): InferredSteps {
  if (!roles.optimizer.includes(1))
    return {
      why: 'kernels of a backward pass, and none of an optimizer that would separate the training steps',
    };
  const { code } = sequence;
  // Optimizer kernels without a product between them belong to one step.
  const steps = parts(sequence, roles.product, { codes: roles.optimizer, last: true }).filter(
    ({ first, last }) => {
      for (let i = first; i <= last; i++) if (roles.product[code[i]!] === 1) return true;
      return false;
    },
  );
  const products = mode(steps.map((part) => countsOf(sequence, roles, part).products));
  const alike = steps.filter(
    (part) => Math.abs(countsOf(sequence, roles, part).products - products) <= Math.max(1, 0.05 * products),
  );
  const found = products >= minProducts ? rateOf(sequence, alike, products) : null;
  if (!found) return { why: 'the parts between two runs of the optimizer differ in their products' };
  return {
    steps: found.passes.map((pass) => ({ ...pass, kind: 'training', tokens: null })),
    confidence: found.confidence,
  };
}

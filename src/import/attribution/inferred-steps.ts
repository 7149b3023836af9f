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
 * GEMMs of a model with two layers. With fewer, the repeated part may be a layer or a benchmark of one operation.
 */
const minGemms = 8;
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
  'no sampling, embedding or optimizer kernel separates passes with equal numbers of GEMMs';

/** Whether kernels of these names can separate steps: without one, the sequence need not be read. */
export const separatesSteps = (names: readonly string[]): boolean =>
  names.some((name) => isTrainingKernel(name) || ['sampling', 'embedding'].includes(kernelLabel(name).class));

/**
 * Finds the steps of a program that marks none. A step ends with kernels that a model runs once per pass (the optimizer
 * in training, sampling in generation), or starts with the lookup of embeddings. Passes between two of them must
 * contain about the same number of GEMMs and, except in training, attention. Nothing is inferred without such a period,
 * or if two periods disagree.
 */
export function inferSteps(sequence: KernelSequence): InferredSteps {
  const roles = rolesOf(sequence);
  const training = roles.optimizer.includes(1) || roles.backward.includes(1);
  if (training) return trainingSteps(sequence, roles);
  if (!roles.attention.includes(1)) return { why: 'no attention kernels, so what repeats may be anything' };
  const candidates = findAnchors(sequence, roles).flatMap((anchor) => {
    const passes = findPasses(sequence, roles, anchor);
    return passes ? [passes] : [];
  });
  if (candidates.length === 0) return { why: noSeparator };
  // The shortest period: a kernel that runs once per request also separates equal parts.
  candidates.sort((a, b) => b.passes.length - a.passes.length || b.coverage - a.coverage);
  const best = candidates[0]!;
  const conflicting = candidates.find(
    ({ gemms }) => Math.abs(gemms - best.gemms) > 0.1 * best.gemms && gemms % best.gemms > 0.1 * best.gemms,
  );
  if (conflicting)
    return {
      why: `two periods fit: passes of ${best.gemms} and of ${conflicting.gemms} GEMMs`,
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
  /** Without split-K reductions, of which a GEMM may have one or none. */
  gemm: Uint8Array;
  gemv: Uint8Array;
  attention: Uint8Array;
  /** Attention of one new token per sequence. */
  decodeAttention: Uint8Array;
  sampling: Uint8Array;
  embedding: Uint8Array;
  optimizer: Uint8Array;
  backward: Uint8Array;
  /** Rows, for kernels with one block per row; NaN: their grid is not one-dimensional; 0: another kernel. */
  rowBlocks: Float64Array;
  /** Blocks of kernels that do more work with more tokens: all except GEMMs and attention. */
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
    gemm: flags(),
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
    roles.gemm[code] = Number(label === 'gemm' && !/split_?k_?reduce/i.test(name));
    roles.gemv[code] = Number(roles.gemm[code] === 1 && gemvNames.test(name));
    roles.attention[code] = Number(label === 'attention');
    roles.decodeAttention[code] = Number(label === 'attention' && decodeNames.test(name));
    roles.sampling[code] = Number(label === 'sampling');
    roles.embedding[code] = Number(label === 'embedding');
    if (rowKernels.test(name)) roles.rowBlocks[code] = gridRows(grid);
    if (label !== 'gemm' && label !== 'attention') roles.blocks[code] = countBlocks(grid);
  }
  if (!roles.optimizer.includes(1) && roles.backward.includes(1))
    for (const [code, { name }] of launches.entries()) roles.optimizer[code] = Number(isForeachKernel(name));
  return roles;
}

/** Blocks of a one-dimensional grid; NaN: another grid. */
function gridRows(grid: string | null): number {
  const [x, y, z] = (grid ?? '').split(',').map(Number);
  return y === 1 && z === 1 && x! > 0 ? x! : Number.NaN;
}

function countBlocks(grid: string | null): number {
  const blocks = (grid ?? '').split(',').reduce((product, size) => product * Number(size), 1);
  return Number.isFinite(blocks) ? blocks : 0;
}

/** Launch codes that separate passes. */
interface Anchor {
  codes: Uint8Array;
  /** They are the last kernels of a pass, not the first. */
  endsPass: boolean;
}

/** Each sampling kernel and each embedding kernel by name, for any grid. */
function findAnchors({ launches }: KernelSequence, { sampling, embedding }: Roles): Anchor[] {
  const anchorsOf = (flags: Uint8Array, endsPass: boolean): Anchor[] => {
    const names = new Set(launches.flatMap(({ name }, code) => (flags[code] === 1 ? [name] : [])));
    return [...names].map((name) => ({
      codes: Uint8Array.from(launches, (launch, code) => Number(flags[code] === 1 && launch.name === name)),
      endsPass,
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
  gemms: number;
  coverage: number;
  confidence: number;
}

/** Parts between anchors; anchors without a GEMM between them count as one. */
function splitAtAnchors(
  { rows: n, code }: KernelSequence,
  gemm: Uint8Array,
  { codes, endsPass }: Anchor,
): Pass[] {
  const ends: number[] = [];
  let gemms = 1;
  for (let i = 0; i < n; i++) {
    if (gemm[code[i]!] === 1) gemms++;
    if (codes[code[i]!] !== 1) continue;
    if (endsPass && gemms === 0 && ends.length > 0) ends[ends.length - 1] = i;
    else if (gemms > 0) ends.push(endsPass ? i : i - 1);
    gemms = 0;
  }
  if (!endsPass) ends.push(n - 1);
  return ends
    .map((end, i) => ({ first: i === 0 ? 0 : ends[i - 1]! + 1, last: end }))
    .filter(({ first, last: end }) => end > first);
}

function findPasses(sequence: KernelSequence, roles: Roles, anchor: Anchor): Passes | null {
  const parts = splitAtAnchors(sequence, roles.gemm, anchor);
  if (parts.length < minSteps) return null;
  const countedParts = parts.map((part) => ({ part, ...countsOf(sequence, roles, part) }));
  const gemms = mode(countedParts.map((pass) => pass.gemms));
  if (gemms < minGemms) return null;
  const alike = countedParts.filter((pass) => Math.abs(pass.gemms - gemms) <= Math.max(1, 0.02 * gemms));
  if (alike.length < minSteps) return null;
  if (mode(alike.map(({ attentions }) => attentions)) < minAttentions) return null;
  const passes = alike.filter(({ attentions }) => attentions > 0).map(({ part }) => part);
  const first = countedParts[0]!;
  // Work before the first pass, such as initialization, belongs to no step.
  if (anchor.endsPass && first.gemms > gemms && passes[0]?.first === first.part.last + 1)
    passes.unshift(lastGemms(sequence, roles, first.part, gemms));
  return ratePasses(sequence, passes, gemms);
}

function ratePasses({ rows: n, dur_ns: dur }: KernelSequence, passes: Pass[], gemms: number): Passes | null {
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
    ? { passes, gemms, coverage, confidence }
    : null;
}

function countsOf({ code }: KernelSequence, { gemm, attention }: Roles, { first, last }: Pass) {
  let gemms = 0;
  let attentions = 0;
  for (let i = first; i <= last; i++) {
    gemms += gemm[code[i]!]!;
    attentions += attention[code[i]!]!;
  }
  return { gemms, attentions };
}

/** The end of a part with this number of GEMMs, including the kernels before the first of them. */
function lastGemms({ code }: KernelSequence, { gemm }: Roles, { first, last }: Pass, gemms: number): Pass {
  let remaining = gemms;
  let i = last;
  for (; i >= first && remaining > 0; i--) remaining -= gemm[code[i]!]!;
  while (i > first && gemm[code[i]!] === 0) i--;
  return { first: i + 1, last };
}

/** The most frequent value; the first one on a tie. */
function mode(values: readonly number[]): number {
  const counts = new Map<number, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts].toSorted((a, b) => b[1] - a[1])[0]?.[0] ?? 0;
}

/**
 * Prefill and decode if that is certain: several other passes follow a prompt (other GEMM launches than usual, and longer or with more
 * blocks), or most GEMMs are of single rows or most attention kernels for one new token. Else all passes are of unknown kind.
 */
function passKinds(sequence: KernelSequence, roles: Roles, passes: readonly Pass[]): StageKind[] {
  const { code, dur_ns: dur } = sequence;
  const passSums = passes.map(({ first, last }) => {
    let hash = 0;
    let ns = 0;
    let blocks = 0;
    const counts = { gemms: 0, gemv: 0, attention: 0, decode: 0 };
    for (let i = first; i <= last; i++) {
      const launchCode = code[i]!;
      ns += dur[i]!;
      blocks += roles.blocks[launchCode]!;
      counts.gemv += roles.gemv[launchCode]!;
      counts.attention += roles.attention[launchCode]!;
      counts.decode += roles.decodeAttention[launchCode]!;
      if (roles.gemm[launchCode] !== 1) continue;
      counts.gemms++;
      hash = (Math.imul(hash, 31) + launchCode) | 0;
    }
    return { hash, ns, blocks, ...counts };
  });
  const usual = mode(passSums.map(({ hash }) => hash));
  const repeated = passSums.filter(({ hash }) => hash === usual);
  const median = (valueOf: (pass: (typeof passSums)[number]) => number) =>
    repeated.map(valueOf).toSorted((a, b) => a - b)[Math.floor(repeated.length / 2)]!;
  const [usualNs, usualBlocks] = [median(({ ns }) => ns), median(({ blocks }) => blocks)];
  const isPrompt = ({ hash, ns, blocks }: (typeof passSums)[number]) =>
    hash !== usual && (ns >= prefillRatio * usualNs || blocks >= prefillBlocks * usualBlocks);
  const isNotPrompt = (pass: (typeof passSums)[number]) => !isPrompt(pass);
  const afterPrompt = passSums.some(
    (pass, i) =>
      isPrompt(pass) &&
      i + minSteps < passSums.length &&
      passSums.slice(i + 1, i + 1 + minSteps).every(isNotPrompt),
  );
  const { gemms, gemv, attention, decode } = repeated[0]!;
  const oneToken = gemv * 2 > gemms || decode * 2 > attention;
  if (repeated.length < minSteps || !(afterPrompt || oneToken)) return passSums.map(() => 'other');
  return passSums.map((pass) => (isPrompt(pass) ? 'prefill' : 'decode'));
}

function tokensOf({ code }: KernelSequence, { rowBlocks }: Roles, { first, last }: Pass): number | null {
  let tokens = 0;
  let rowKernelCount = 0;
  for (let i = first; i <= last; i++) {
    const blocks = rowBlocks[code[i]!]!;
    if (blocks === 0) continue;
    if (Number.isNaN(blocks) || (tokens > 0 && blocks !== tokens)) return null;
    tokens = blocks;
    rowKernelCount++;
  }
  return rowKernelCount >= minAttentions ? tokens : null;
}

/** A training step ends with its optimizer. */
function trainingSteps(sequence: KernelSequence, roles: Roles): InferredSteps {
  if (!roles.optimizer.includes(1))
    return {
      why: 'kernels of a backward pass, and none of an optimizer that would separate the training steps',
    };
  const { code } = sequence;
  // Optimizer kernels without a GEMM between them belong to one step.
  const steps = splitAtAnchors(sequence, roles.gemm, { codes: roles.optimizer, endsPass: true }).filter(
    ({ first, last }) => {
      for (let i = first; i <= last; i++) if (roles.gemm[code[i]!] === 1) return true;
      return false;
    },
  );
  const gemms = mode(steps.map((part) => countsOf(sequence, roles, part).gemms));
  const alike = steps.filter(
    (part) => Math.abs(countsOf(sequence, roles, part).gemms - gemms) <= Math.max(1, 0.05 * gemms),
  );
  const rated = gemms >= minGemms ? ratePasses(sequence, alike, gemms) : null;
  if (!rated) return { why: 'the parts between two runs of the optimizer differ in their GEMMs' };
  return {
    steps: rated.passes.map((pass) => ({ ...pass, kind: 'training', tokens: null })),
    confidence: rated.confidence,
  };
}

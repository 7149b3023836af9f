import type { StageKind } from '../../model/record.js';
import { isTrainingKernel } from '../kernel-classes/training.js';
import { kernelLabel } from '../kernel-classes/classify.js';
import { type KernelSequence, type Roles, rolesOf } from './launch-roles.js';
import { minSteps, mode, type Pass, passKinds } from './pass-kinds.js';

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

/**
 * GEMMs of a model with two layers. With fewer, the repeated part may be a layer or a benchmark of one operation.
 */
const minGemms = 8;
/** Minimum attentions per step: a part with one attention is a layer, for example between two top-k of a router. */
const minAttentions = 2;
/** A prompt has at most this multiple of the GEMMs of the passes after it, for example with a loop over experts. */
const maxGemmRatio = 2;
/** Share of the kernel time from the first step on that the steps must cover. */
const minCoverage = 0.5;
/** Share of the kernels between the first and the last step that must belong to steps. */
const minConfidence = 0.8;

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
  const shortest = candidates.reduce((a, b) => (b.passes.length > a.passes.length ? b : a));
  const isShortest = ({ gemms }: Passes) => Math.abs(gemms - shortest.gemms) <= 0.1 * shortest.gemms;
  const best = candidates.filter(isShortest).reduce((a, b) => (b.coveredNs > a.coveredNs ? b : a));
  const conflicting = candidates.find(
    (candidate) => !isShortest(candidate) && cutsPass(sequence, roles, best.passes, candidate.passes),
  );
  if (conflicting)
    return {
      why: `two periods fit: passes of ${best.gemms} and of ${conflicting.gemms} GEMMs`,
    };
  return {
    steps: passKinds(sequence, roles, best.passes, best.unlike).map((pass) => ({
      ...pass,
      tokens: tokensOf(sequence, roles, pass),
    })),
    confidence: best.confidence,
  };
}

/** Whether one of the parts starts or ends inside a pass: with GEMMs of the pass on both sides. */
function cutsPass(
  { rows: n, code }: KernelSequence,
  { gemm }: Roles,
  passes: readonly Pass[],
  parts: readonly Pass[],
): boolean {
  const gemmsBefore = new Int32Array(n + 1);
  for (let i = 0; i < n; i++) gemmsBefore[i + 1] = gemmsBefore[i]! + gemm[code[i]!]!;
  const boundaries = new Set(parts.flatMap(({ first, last }) => [gemmsBefore[first], gemmsBefore[last + 1]]));
  return passes.some(({ first, last }) => {
    for (let gemms = gemmsBefore[first]! + 1; gemms < gemmsBefore[last + 1]!; gemms++)
      if (boundaries.has(gemms)) return true;
    return false;
  });
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

interface RatedPasses {
  passes: Pass[];
  /** GEMMs per pass. */
  gemms: number;
  coveredNs: number;
  confidence: number;
}

interface Passes extends RatedPasses {
  /** Parts with another number of GEMMs, directly before one of the passes. */
  unlike: Pass[];
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
  if (anchor.endsPass) parts[0] = startAtEmbedding(sequence, roles, parts[0]!);
  const countedParts = parts.map((part) => ({ part, ...countsOf(sequence, roles, part) }));
  const gemms = mode(countedParts.map((pass) => pass.gemms));
  if (gemms < minGemms) return null;
  const alike = countedParts.filter((pass) => Math.abs(pass.gemms - gemms) <= Math.max(1, 0.02 * gemms));
  if (alike.length < minSteps) return null;
  if (mode(alike.map(({ attentions }) => attentions)) < minAttentions) return null;
  const passes = alike.filter(({ attentions }) => attentions > 0).map(({ part }) => part);
  const starts = new Set(passes.map(({ first }) => first));
  const unlike = countedParts
    .filter((pass) => !alike.includes(pass) && pass.attentions > 0 && starts.has(pass.part.last + 1))
    .map(({ part, gemms: counted }) =>
      // Work before the first pass, such as initialization, belongs to no step.
      part === parts[0] && counted > maxGemmRatio * gemms
        ? lastGemms(sequence, roles, part, gemms)
        : startAtEmbedding(sequence, roles, part),
    );
  const rated = ratePasses(sequence, passes, gemms);
  return rated && { ...rated, unlike };
}

function ratePasses(
  { rows: n, dur_ns: dur }: KernelSequence,
  passes: Pass[],
  gemms: number,
): RatedPasses | null {
  if (passes.length < minSteps) return null;
  // Preparation before the first step may take longer than all of them, such as the capture of graphs.
  let total = 0;
  for (let i = passes[0]!.first; i < n; i++) total += dur[i]!;
  let coveredNs = 0;
  let kernels = 0;
  for (const { first, last } of passes) {
    kernels += last - first + 1;
    for (let i = first; i <= last; i++) coveredNs += dur[i]!;
  }
  const confidence = kernels / (passes.at(-1)!.last - passes[0]!.first + 1);
  return total > 0 && coveredNs >= minCoverage * total && confidence >= minConfidence
    ? { passes, gemms, coveredNs, confidence }
    : null;
}

/** A softmax before a sampling kernel is that of a router or of the sampling, not attention. */
function countsOf(
  { code }: KernelSequence,
  { gemm, attention, softmax, sampling }: Roles,
  { first, last }: Pass,
) {
  let gemms = 0;
  let attentions = 0;
  for (let i = first; i <= last; i++) {
    gemms += gemm[code[i]!]!;
    const isOther = softmax[code[i]!] === 1 && sampling[code[i + 1]!] === 1;
    if (attention[code[i]!] === 1 && !isOther) attentions++;
  }
  return { gemms, attentions };
}

/** A part from its last lookup of embeddings before its first GEMM, if it has one: what the program does before is no part of the pass. */
function startAtEmbedding({ code }: KernelSequence, { gemm, embedding }: Roles, { first, last }: Pass): Pass {
  let start = first;
  for (let i = first; i <= last && gemm[code[i]!] === 0; i++) if (embedding[code[i]!] === 1) start = i;
  return { first: start, last };
}

/** The end of a part with this number of GEMMs, including the kernels before the first of them. */
function lastGemms({ code }: KernelSequence, { gemm }: Roles, { first, last }: Pass, gemms: number): Pass {
  let remaining = gemms;
  let i = last;
  for (; i >= first && remaining > 0; i--) remaining -= gemm[code[i]!]!;
  while (i > first && gemm[code[i]!] === 0) i--;
  return { first: i + 1, last };
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

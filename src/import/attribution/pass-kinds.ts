import type { StageKind } from '../../model/record.js';
import type { KernelSequence, Roles } from './launch-roles.js';

/** First and last kernel of a pass, both inclusive. */
export interface Pass {
  first: number;
  last: number;
}

/** With fewer passes, a repetition may be chance. */
export const minSteps = 3;
/** A prompt takes longer than a decode step by at least this factor, or launches more blocks by the second one. */
const prefillRatio = 1.5;
const prefillBlocks = 4;
/** Outputs of a pass's GEMMs relative to those of the usual pass (geometric mean): from the first on it has more tokens, below the second as many. */
const moreTokens = 3;
const asManyTokens = 1.25;

/** The most frequent value; the first one on a tie. */
export function mode(values: readonly number[]): number {
  const counts = new Map<number, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts].toSorted((a, b) => b[1] - a[1])[0]?.[0] ?? 0;
}

type PassSums = ReturnType<typeof sumPass>;

function sumPass({ code, dur_ns: dur }: KernelSequence, roles: Roles, { first, last }: Pass) {
  const sums = {
    hash: 0,
    ns: 0,
    blocks: 0,
    gemms: 0,
    gemv: 0,
    attention: 0,
    decode: 0,
    tiled: 0,
    logOutputs: 0,
  };
  for (let i = first; i <= last; i++) {
    const launchCode = code[i]!;
    sums.ns += dur[i]!;
    sums.blocks += roles.blocks[launchCode]!;
    sums.gemv += roles.gemv[launchCode]!;
    sums.attention += roles.attention[launchCode]!;
    sums.decode += roles.decodeAttention[launchCode]!;
    if (roles.gemm[launchCode] !== 1) continue;
    sums.gemms++;
    sums.hash = (Math.imul(sums.hash, 31) + launchCode) | 0;
    if (Number.isNaN(roles.logOutputs[launchCode]!)) continue;
    sums.tiled++;
    sums.logOutputs += roles.logOutputs[launchCode]!;
  }
  return sums;
}

/** Outputs of the GEMMs of a pass in relation to another pass, in the geometric mean; NaN: too few have a tile in their name. */
function outputRatio(pass: PassSums, other: PassSums): number {
  const known = [pass, other].every(({ tiled, gemms }) => tiled * 2 > gemms);
  return known ? Math.exp(pass.logOutputs / pass.tiled - other.logOutputs / other.tiled) : Number.NaN;
}

/** The pass with the GEMM launches that repeat most often; if none repeat (the rows per expert change), with the median of the outputs. */
function findUsual(sums: readonly PassSums[]): PassSums {
  const usual = mode(sums.map(({ hash }) => hash));
  const repeated = sums.filter(({ hash }) => hash === usual);
  if (repeated.length >= minSteps) return repeated[0]!;
  const meanOutputs = ({ logOutputs, tiled }: PassSums) => logOutputs / Math.max(tiled, 1);
  return sums.toSorted((a, b) => meanOutputs(a) - meanOutputs(b))[Math.floor(sums.length / 2)]!;
}

/**
 * Ends a prompt with the encoder, if the decoder's first pass follows: one that starts with a lookup of embeddings for as many tokens as a
 * usual pass, and has as many attention kernels.
 */
function splitAfterEncoder(sequence: KernelSequence, roles: Roles, prompt: Pass, usual: Pass) {
  const { code } = sequence;
  const lookups = new Set<number>();
  for (let i = usual.first; i <= usual.last && roles.gemm[code[i]!] === 0; i++)
    if (roles.embedding[code[i]!] === 1) lookups.add(code[i]!);
  let gemms = 0;
  for (let i = prompt.first; i <= prompt.last; i++) {
    gemms += roles.gemm[code[i]!]!;
    const first = { first: i, last: prompt.last };
    if (gemms === 0 || !lookups.has(code[i]!)) continue;
    if (sumPass(sequence, roles, first).attention !== sumPass(sequence, roles, usual).attention) continue;
    return [
      { first: prompt.first, last: i - 1, prompt: true },
      { ...first, prompt: false },
    ];
  }
  return [{ ...prompt, prompt: true }];
}

/** The passes in order, with kinds; `unlike` passes only if they are prompts. */
export type KnownPass = Pass & { kind: StageKind };

/**
 * Prefill and decode if that is certain: several other passes follow a prompt (other GEMM launches than usual, with more outputs, or
 * else longer or with more blocks), or most GEMMs are of single rows or most attention kernels for one new token. Else all passes are of unknown kind.
 * @param unlike parts with other numbers of GEMMs, each before one of the passes: a prompt may run other kernels than a token,
 *   because only one of them is compiled or because of how experts are computed
 */
export function passKinds(
  sequence: KernelSequence,
  roles: Roles,
  passes: readonly Pass[],
  unlike: readonly Pass[],
): KnownPass[] {
  const alikeSums = passes.map((pass) => sumPass(sequence, roles, pass));
  const usualPass = findUsual(alikeSums);
  const isUsual = (pass: PassSums) => {
    const ratio = outputRatio(pass, usualPass);
    return pass.hash === usualPass.hash || (ratio < asManyTokens && ratio > 1 / asManyTokens);
  };
  const repeated = alikeSums.filter(isUsual);
  const median = (valueOf: (pass: PassSums) => number) =>
    repeated.map(valueOf).toSorted((a, b) => a - b)[Math.floor(repeated.length / 2)]!;
  const [usualNs, usualBlocks] = [median(({ ns }) => ns), median(({ blocks }) => blocks)];
  const isPrompt = (pass: PassSums) => {
    if (isUsual(pass)) return false;
    const ratio = outputRatio(pass, usualPass);
    if (ratio >= moreTokens || ratio < asManyTokens) return ratio >= moreTokens;
    return pass.ns >= prefillRatio * usualNs || pass.blocks >= prefillBlocks * usualBlocks;
  };
  const known = [
    ...passes.map((pass, i) => ({ ...pass, prompt: isPrompt(alikeSums[i]!) })),
    ...unlike
      .filter((pass) => outputRatio(sumPass(sequence, roles, pass), usualPass) >= moreTokens)
      .flatMap((pass) => splitAfterEncoder(sequence, roles, pass, passes[alikeSums.indexOf(usualPass)]!)),
  ].toSorted((a, b) => a.first - b.first);
  const afterPrompt = known.some(
    ({ prompt }, i) =>
      prompt &&
      i + minSteps < known.length &&
      known.slice(i + 1, i + 1 + minSteps).every((pass) => !pass.prompt),
  );
  const { gemms, gemv, attention, decode } = usualPass;
  const oneToken = gemv * 2 > gemms || decode * 2 > attention;
  if (repeated.length < minSteps || !(afterPrompt || oneToken))
    return passes.map((pass) => ({ ...pass, kind: 'other' }));
  return known.map(({ first, last, prompt }) => ({ first, last, kind: prompt ? 'prefill' : 'decode' }));
}

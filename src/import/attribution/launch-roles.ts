import { kernelLabel } from '../kernel-classes/classify.js';
import { isForeachKernel, isOptimizerKernel, isTrainingKernel } from '../kernel-classes/training.js';

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

/** What is known of a launch from its name and grid, by launch code. */
export interface Roles {
  /** Without split-K reductions, of which a GEMM may have one or none. */
  gemm: Uint8Array;
  gemv: Uint8Array;
  attention: Uint8Array;
  /** Attention kernels that are a softmax alone, which may also be one of a router or of sampling. */
  softmax: Uint8Array;
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
  /**
   * Natural logarithm of the outputs of a GEMM, with padding: those of its tile by its blocks. Less than it computes if a block
   * computes several tiles; NaN: another kernel, or no tile in its name.
   */
  logOutputs: Float64Array;
}

const decodeNames =
  /decode|paged_attention|pagedattention|mmha|masked_multihead|xqa|splitkv|split_kv|pa_fwd|flash_fwd_split/i;
const gemvNames = /gemv|dot_kernel|gemmk1|gemmSN/i;
/** Norms and gated activations that launch one block per token. */
const rowKernels =
  /vectorized_layer_norm_kernel|rms_norm_kernel|fused_add_rms_norm|RMSNormKernel|act_and_mul_kernel/;

export function rolesOf({ launches }: KernelSequence): Roles {
  const n = launches.length;
  const flags = () => new Uint8Array(n);
  const roles: Roles = {
    gemm: flags(),
    gemv: flags(),
    attention: flags(),
    softmax: flags(),
    decodeAttention: flags(),
    sampling: flags(),
    embedding: flags(),
    optimizer: flags(),
    backward: flags(),
    rowBlocks: new Float64Array(n),
    blocks: new Float64Array(n),
    logOutputs: new Float64Array(n).fill(Number.NaN),
  };
  const labels = new Map<string, ReturnType<typeof kernelLabel>>();
  for (const [code, { name, grid }] of launches.entries()) {
    if (!labels.has(name)) labels.set(name, kernelLabel(name));
    const { class: label, tile } = labels.get(name)!;
    roles.optimizer[code] = Number(isOptimizerKernel(name));
    roles.backward[code] = Number(isTrainingKernel(name) && !isOptimizerKernel(name));
    roles.gemm[code] = Number(label === 'gemm' && !/split_?k_?reduce/i.test(name));
    roles.gemv[code] = Number(roles.gemm[code] === 1 && gemvNames.test(name));
    roles.attention[code] = Number(label === 'attention');
    roles.softmax[code] = Number(label === 'attention' && /soft_?max/i.test(name));
    roles.decodeAttention[code] = Number(label === 'attention' && decodeNames.test(name));
    roles.sampling[code] = Number(label === 'sampling');
    roles.embedding[code] = Number(label === 'embedding');
    if (rowKernels.test(name)) roles.rowBlocks[code] = gridRows(grid);
    if (label !== 'gemm' && label !== 'attention') roles.blocks[code] = countBlocks(grid);
    if (roles.gemm[code] === 1) roles.logOutputs[code] = Math.log(tileOutputs(tile) * countBlocks(grid));
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

/** Outputs of a tile "MxNxK"; NaN: unknown. */
function tileOutputs(tile: string | null | undefined): number {
  const [rows, columns] = (tile ?? '').split('x').map(Number);
  return (rows || Number.NaN) * (columns ?? Number.NaN);
}

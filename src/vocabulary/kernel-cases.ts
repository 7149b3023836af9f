import type { KernelResult, KernelStep } from '../model/documents/kernels.js';
import { plural } from './format.js';

type Params = KernelResult['params'];

const times = (...sizes: (number | undefined)[]): string => sizes.map((size) => size ?? '?').join('×');

const sizes: Record<string, (p: Params) => string> = {
  gemm: (p) => times(p['m'], p['n'], p['k']),
  linear: (p) =>
    `${times(p['tokens'], p['out_features'], p['in_features'])}${p['bias'] === 1 ? ' + bias' : ''}`,
  conv2d: (p) =>
    `${times(p['batch'], p['channels'], p['height'], p['width'])} → ${p['out_channels']}, ${times(p['kernel'], p['kernel'])}`,
  lstm: (p) =>
    `${times(p['batch'], p['seq'], p['input'])} → ${p['hidden']}, ${plural(p['layers'] ?? 0, 'layer')}`,
  // Batch × new tokens. Values that sweeps change come first, since narrow tables cut the end.
  attention: (p) =>
    `${p['batch']}×${p['new_tokens']}, context ${p['context']}, ${p['heads']}/${p['kv_heads']} heads × ${p['head_dim']}`,
  rmsnorm: (p) => `${times(p['tokens'], p['hidden'])}${p['residual'] === 1 ? ' + residual' : ''}`,
  rope: (p) =>
    `${plural(p['tokens'] ?? 0, 'token')}, ${p['heads']}/${p['kv_heads']} heads × ${p['head_dim']}`,
  embedding: (p) => `${p['tokens']} of ${times(p['vocab'], p['hidden'])}`,
};

/** "8×1, context 2048, 32/8 heads × 128" (batch × new tokens, heads/KV heads × head_dim), "8×4096×4096" (m×n×k) */
function sizesOf({ kernel, params }: Pick<KernelResult, 'kernel' | 'params'>): string {
  return sizes[kernel]?.(params) ?? times(...Object.values(params));
}

/** "attention flash 8×1, context 2048, …"; with the dtype if a table has several. */
export function caseLabel(result: KernelResult, withDType: boolean): string {
  return [result.kernel, result.backend, withDType ? result.dtype : null, sizesOf(result)]
    .filter((word) => word !== null)
    .join(' ');
}

/** The id of a case with multiplication signs: gemm float32 16×256×256. */
export const caseText = (id: string): string => id.replaceAll(/(?<=\d)x(?=\d)/g, '×');

/** "decode, batch 8, context 2048" */
export const stepLabel = ({
  phase,
  batch_size,
  new_tokens,
  context_tokens,
}: Omit<KernelStep, 'ops'>): string =>
  phase === 'prefill'
    ? `prefill, batch ${batch_size}, ${plural(new_tokens, 'token')}`
    : `decode, batch ${batch_size}, context ${context_tokens}`;

export const caseOutcomeLabels: Readonly<Record<KernelResult['outcome'], string>> = {
  measured: 'measured',
  out_of_memory: 'out of memory',
  unsupported: 'not supported',
  failed: 'failed',
  wrong: 'wrong result',
  stopped: 'stopped',
};

export const caseOutcomeMeanings: typeof caseOutcomeLabels = {
  measured: 'timed, and its result is correct',
  out_of_memory: 'its tensors do not fit into device memory',
  unsupported: 'the device or library has no such kernel',
  failed: 'the kernel raised an error',
  wrong: 'its result differs from the reference by more than the type allows',
  stopped: 'stopped before it was timed',
};

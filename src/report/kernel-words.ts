import type { KernelResult, KernelStep, KernelsResult } from '../model/documents/kernels.js';
import { formatCount, formatNumber, formatQuantity, nbsp } from './format.js';

type Params = KernelResult['params'];

const times = (...sizes: (number | undefined)[]): string => sizes.map((size) => size ?? '?').join('×');

const sizes: Record<string, (p: Params) => string> = {
  gemm: (p) => times(p['m'], p['n'], p['k']),
  linear: (p) =>
    `${times(p['tokens'], p['out_features'], p['in_features'])}${p['bias'] === 1 ? ' + bias' : ''}`,
  conv2d: (p) =>
    `${times(p['batch'], p['channels'], p['height'], p['width'])} → ${p['out_channels']}, ${times(p['kernel'], p['kernel'])}`,
  lstm: (p) =>
    `${times(p['batch'], p['seq'], p['input'])} → ${p['hidden']}, ${p['layers']} layer${p['layers'] === 1 ? '' : 's'}`,
  // Batch × new tokens / context. What sweeps change comes first: narrow tables cut the end.
  attention: (p) =>
    `${p['batch']}×${p['new_tokens']}/${p['context']}, ${p['heads']}/${p['kv_heads']} heads × ${p['head_dim']}`,
  rmsnorm: (p) => `${times(p['tokens'], p['hidden'])}${p['residual'] === 1 ? ' + residual' : ''}`,
  rope: (p) => `${p['tokens']} tokens, ${p['heads']}/${p['kv_heads']} heads × ${p['head_dim']}`,
  embedding: (p) => `${p['tokens']} of ${times(p['vocab'], p['hidden'])}`,
};

/** "8×1/2048, 32/8 heads × 128" (batch × new tokens / context, heads/KV heads × head_dim), "8×4096×4096" (m×n×k) */
export function sizesOf({ kernel, params }: Pick<KernelResult, 'kernel' | 'params'>): string {
  return sizes[kernel]?.(params) ?? times(...Object.values(params));
}

/** "attention flash 8×1/2048, …"; the dtype where a table has several. */
export function caseLabel(one: KernelResult, withDType: boolean): string {
  return [one.kernel, one.backend, withDType ? one.dtype : null, sizesOf(one)]
    .filter((word) => word !== null)
    .join(' ');
}

/** "decode, batch 8, 128 tokens in the cache" */
export function stepLabel({
  phase,
  batch_size,
  new_tokens,
  context_tokens,
}: Omit<KernelStep, 'ops'>): string {
  return phase === 'prefill'
    ? `prefill, batch ${batch_size}, ${formatCount(new_tokens)} tokens`
    : `decode, batch ${batch_size}, context ${formatCount(context_tokens)}`;
}

/** "1.2 %": half of the 95 % interval as a share of the mean. */
export function intervalShare({ mean_ns: mean }: KernelResult): string | null {
  if (mean.value === null || !mean.ci95) return null;
  return `${formatNumber((50 * (mean.ci95[1] - mean.ci95[0])) / mean.value, 2)}${nbsp}%`;
}

const outcomes: Record<KernelResult['outcome'], string> = {
  measured: 'measured',
  out_of_memory: 'out of memory',
  unsupported: 'not supported',
  failed: 'failed',
  wrong: 'wrong result',
  stopped: 'stopped',
};

export const outcomeWords = ({ outcome }: Pick<KernelResult, 'outcome'>): string => outcomes[outcome];

/** "torch 2.11.0 on NVIDIA H200", "onnxruntime 1.30.0 CPU, 1 thread". */
export function deviceWords({ plan }: KernelsResult): string {
  const { engine, device, device_facts: facts, threads } = plan;
  const by = `${engine.name} ${engine.version ?? ''}`.trim();
  const on = facts && device !== 'cpu' ? facts.name : device === 'cpu' ? 'CPU' : device;
  return `${by}, ${on}${threads === null ? '' : `, ${threads} thread${threads === 1 ? '' : 's'}`}`;
}

/** How the figures came about. */
export function protocolWords({ plan, cases: all }: KernelsResult): string {
  const cases = all.filter((one) => one.runs > 0);
  const { runs, narrow, max_seconds: seconds, check } = plan.protocol;
  const graphs = cases.filter(({ method }) => method === 'graph').length;
  const how =
    graphs === 0
      ? ''
      : plan.device === 'cpu'
        ? `, ${graphs} of ${cases.length} in copies one after another`
        : `, ${graphs} of ${cases.length} from a CUDA graph`;
  return `${runs} runs or more until ± ${100 * narrow} %, ${seconds} s at most${how}; ${check ? 'checked against float64' : 'not checked'}`;
}

/** "L3 13.4 to 42.9 GB/s" */
function levelWords({ level, low_bytes_per_s: low, high_bytes_per_s: high }: Level): string {
  const most = formatQuantity(high, 'B/s');
  return low < 0.99 * high ? `${level} ${formatQuantity(low, 'B/s')} to ${most}` : `${level} ${most}`;
}

type Level = KernelsResult['roofs']['levels'][number];

/** Where the roofs are from. */
export function roofWords({ roofs }: KernelsResult): string {
  const { bytes_per_s: bandwidth, compute, levels } = roofs;
  if (bandwidth.value === null) return bandwidth.reason.text;
  const peaks = compute.flatMap(({ dtype, flops_per_s: peak }) =>
    peak.value === null ? [] : [`${dtype} ${formatQuantity(peak.value, 'FLOP/s')}`],
  );
  const [first] = compute.flatMap(({ flops_per_s: peak }) => (peak.value === null ? [] : [peak.source]));
  if (levels.length === 0) {
    return `${[formatQuantity(bandwidth.value, 'B/s'), ...peaks].join(', ')}: ${bandwidth.source}`;
  }
  return `${[...levels.map(levelWords), ...peaks].join(', ')}: ${first ?? bandwidth.source}; each operation is judged by the level that holds its working set`;
}

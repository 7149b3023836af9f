import type { VllmRankFacts } from '../../model/vllm-log.js';

/** Fields of a rank that are sizes. */
type ByteField = {
  [Field in keyof VllmRankFacts]: VllmRankFacts[Field] extends { rounding_bytes: number } | null
    ? Field
    : never;
}[keyof VllmRankFacts];

const number = String.raw`(-?\d+(?:\.\d+)?)`;
/** "GB" and "Gib" are GiB too: vLLM divides by 2^30 in every version. */
const gib = String.raw`\s?Gi?[Bb]`;

/**
 * Sizes that a worker prints, by the versions that print them. A pattern has one number, in GiB unless `unit` is bytes.
 * Later lines replace earlier ones, unless the earlier one has more digits.
 */
export const sizePatterns: { field: ByteField; pattern: RegExp; unit?: 'bytes' }[] = [
  // 0.2 to 0.7: Loading model weights took 14.9888 GB
  // 0.8 on: Model loading took 15.6271 GiB and 119.639792 seconds, from 2026 on: 14.29 GiB memory and 4.66 seconds
  {
    field: 'weights',
    pattern: new RegExp(`(?:Loading model weights|Model loading) took ${number}${gib}`, 'g'),
  },
  // 0.6.5 to the end of V0
  { field: 'weights', pattern: new RegExp(`model weights take ${number}${gib}`, 'g') },
  // 0.10.2 on: Actual usage is 74.28 GiB for weight, 5.58 GiB for peak activation, …
  { field: 'weights', pattern: new RegExp(`${number}${gib} for weights?\\b`, 'g') },
  // 2026: Actual usage is 56.89 GiB for consumed memory (weights + non-torch), …
  { field: 'consumed', pattern: new RegExp(`${number}${gib} for consumed memory`, 'g') },
  // 0.6.4, where one field says Gib
  { field: 'device_total', pattern: new RegExp(`total_gpu_memory=${number}${gib}`, 'g') },
  { field: 'device_used_at_start', pattern: new RegExp(`initial_memory_usage=${number}${gib}`, 'g') },
  { field: 'torch_peak', pattern: new RegExp(`peak_torch_memory=${number}${gib}`, 'g') },
  { field: 'non_torch', pattern: new RegExp(`non_torch_memory=${number}${gib}`, 'g') },
  { field: 'kv_cache', pattern: new RegExp(`kv_cache_size=${number}${gib}`, 'g') },
  // 0.6.5 to the end of V0
  { field: 'device_total', pattern: new RegExp(`total_gpu_memory \\(${number}${gib}\\)`, 'g') },
  {
    field: 'budget',
    pattern: new RegExp(`x gpu_memory_utilization \\([\\d.]+\\) = ${number}${gib}`, 'g'),
  },
  { field: 'non_torch', pattern: new RegExp(`non_torch_memory takes ${number}${gib}`, 'g') },
  { field: 'activation_peak', pattern: new RegExp(`activation peak memory takes ${number}${gib}`, 'g') },
  { field: 'kv_cache', pattern: new RegExp(`reserved for KV Cache is ${number}${gib}`, 'g') },
  // 0.9 on
  { field: 'kv_cache', pattern: new RegExp(`Available KV cache memory: ${number}${gib}`, 'g') },
  // Builds for CPUs; the main memory node replaces the GPU. Explicitly set (1.0/23.54) GiB for KV cache on node 0.
  // Auto set (8.1/23.54) GiB for KV cache on node 0, with 9.42 GiB requested memory for the worker. 1.3 GiB memory was consumed by …
  {
    field: 'kv_cache',
    pattern: new RegExp(`(?:Explicitly|Auto) set \\(${number}/[\\d.]+\\) GiB for KV cache`, 'g'),
  },
  {
    field: 'device_total',
    pattern: new RegExp(`(?:Explicitly|Auto) set \\([\\d.]+/${number}\\) GiB for KV cache`, 'g'),
  },
  { field: 'budget', pattern: new RegExp(`with ${number}${gib} requested memory for the worker`, 'g') },
  { field: 'consumed', pattern: new RegExp(`${number}${gib} memory was consumed by non-kv usages`, 'g') },
  // 0.10.2 on; the refusal names the device: Free memory on device cuda:0 (27.28/31.86 GiB) on startup is less than …
  {
    field: 'device_free_at_start',
    pattern: new RegExp(`Free memory on device (?:\\S+ )?\\(${number}/[\\d.]+${gib}\\)`, 'g'),
  },
  {
    field: 'device_total',
    pattern: new RegExp(`Free memory on device (?:\\S+ )?\\([\\d.]+/${number}${gib}\\)`, 'g'),
  },
  {
    field: 'budget',
    pattern: new RegExp(`[Dd]esired GPU memory utilization (?:is )?\\([\\d.]+, ${number}${gib}\\)`, 'g'),
  },
  { field: 'activation_peak', pattern: new RegExp(`${number}${gib} for peak activation`, 'g') },
  { field: 'non_torch', pattern: new RegExp(`${number}${gib} for non-torch memory`, 'g') },
  { field: 'cuda_graphs', pattern: new RegExp(`${number}${gib} for (?:CUDA|NPU) ?[Gg]raph memory`, 'g') },
  // 0.10.2 printed bytes, later versions GiB
  { field: 'kv_cache', pattern: /Current kv cache memory in use is (\d+) bytes/g, unit: 'bytes' },
  {
    field: 'kv_cache',
    pattern: new RegExp(`Current kv cache memory(?: in use is|:) ${number}${gib}`, 'gi'),
  },
  // 0.6.5 on
  {
    field: 'cuda_graphs',
    pattern: new RegExp(`Graph capturing finished in \\d+ secs?, took ${number}${gib}`, 'g'),
  },
  // 2026
  { field: 'cuda_graphs_estimate', pattern: new RegExp(`Estimated CUDA graph memory: ${number}${gib}`, 'g') },
  { field: 'cuda_graphs', pattern: new RegExp(`CUDA graph pool memory: ${number}${gib} \\(actual\\)`, 'g') },
];

export const secondPatterns: { field: 'load_seconds' | 'graph_capture_seconds'; pattern: RegExp }[] = [
  {
    field: 'load_seconds',
    pattern: /Model loading took [\d.]+ Gi?B (?:memory )?and (\d+(?:\.\d+)?) seconds/g,
  },
  { field: 'graph_capture_seconds', pattern: /Graph capturing finished in (\d+(?:\.\d+)?) secs?/g },
];

/** A line in which vLLM fails for lack of memory. */
export const failurePatterns: RegExp[] = [
  /No available memory for the cache blocks[^\n]*/,
  /max seq len \(\d+\) is larger than the maximum number of tokens that can be stored in KV cache \(\d+\)[^\n]*/,
  /To serve at least one request with the models?'s max seq len[^\n]*/,
  /Free memory on device[^\n]*is less than desired GPU memory utilization[^\n]*/,
  /Available memory on node[^\n]*is less than (?:desired CPU memory utilization|requested memory for kv)[^\n]*/,
  /(?:torch\.(?:cuda\.)?)?OutOfMemoryError: (?:CUDA|HIP) out of memory[^\n]*/,
];

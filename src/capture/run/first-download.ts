import type { Issue } from '../../model/document.js';

/**
 * A progress bar of huggingface_hub or transformers for a file of weights: `model.safetensors: 100%|██████████| 2.20G/2.20G [00:21<00:00,
 * 104MB/s]`
 */
const weightsBar =
  /([\w./-]+\.(?:safetensors|bin|gguf|pth?)):\s+\d+%\|[^\r\n]*?\s([\d.]+[kMGT]?)\/([\d.]+[kMGT]?)\s\[([\d:]+)<[^\r\n]*?B\/s\]/g;

/** Whether the program downloaded its model during the run: the measurement then includes the download. */
export function downloadIssue(output: string): Issue | null {
  const bar = [...output.matchAll(weightsBar)].at(-1);
  if (!bar) return null;
  const [, file, , size, took] = bar;
  const text =
    `The program downloaded its model while it was measured (${file}, ${size}B in ${took}). ` +
    'Total and loading time include the download; run it again to load the model from the cache.';
  return { code: 'first_download', severity: 'warning', text };
}

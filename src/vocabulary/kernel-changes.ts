import type { CompareResult, KernelChange } from '../model/documents/compare.js';

/** Change of a kernel or operator from the first to the last session. */
export const kernelChangeLabels: Readonly<Record<KernelChange, string>> = {
  new: 'new',
  gone: 'gone',
  faster: 'faster',
  slower: 'slower',
  more: 'more often',
  fewer: 'less often',
  between: 'only between',
  same: 'same',
};

/** What a comparison lists: kernels of GPU timelines, operators of programs on the CPU. */
export const kernelNoun = (what: CompareResult['what']): string =>
  what === 'trace' ? 'kernels' : 'operators';

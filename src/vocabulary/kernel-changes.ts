import type { KernelChange } from '../model/documents/compare.js';

/** What became of a kernel or operator, the last session against the first. */
export const kernelChangeLabels: Readonly<Record<KernelChange, string>> = {
  new: 'new',
  gone: 'gone',
  faster: 'faster',
  slower: 'slower',
  more: 'more often',
  fewer: 'less often',
  same: 'same',
};

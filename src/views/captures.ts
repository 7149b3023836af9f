import type { Document } from '../model/document.js';
import type { CountersResult } from '../model/documents/counters.js';
import type { GemmsResult } from '../model/documents/gemms.js';
import type { Section } from './block.js';
import { counterBlocks } from './counters.js';
import { gemmBlocks } from './gemms.js';

export interface Captures {
  counters: Document<CountersResult> | null;
  gemms: Document<GemmsResult> | null;
}

/** What captures other than a timeline hold. */
export const captureSections = ({ counters, gemms }: Captures): Section[] => [
  ...(counters ? [{ id: 'counters', title: 'Nsight Compute', blocks: counterBlocks(counters) }] : []),
  ...(gemms ? [{ id: 'gemms', title: 'Matrix multiplications', blocks: gemmBlocks(gemms) }] : []),
];

import type { MemoryResult } from '../../../model/documents/memory-result.js';
import { shortPlace } from '../../../views/memory-series.js';
import { classColors } from '../../palette.js';
import type { Chart } from '../chart.js';
import { type FloatingBar, floatingBarsOption, floatingHeight } from '../floating-bars.js';

/** More do not fit a page; the table behind has all that the snapshot kept. */
const shown = 20;

function rowsOf({ allocations }: MemoryResult, part: string): FloatingBar[] {
  const own = (allocations ?? []).filter(({ gpu }) => String(gpu) === part);
  return own.slice(0, shown).map(({ operator, stage, bytes, blocks }, index) => ({
    id: String(index),
    name: shortPlace(operator).slice(0, 60),
    meaning: `${stage}${blocks === null ? '' : `, ${blocks} blocks`}: ${operator}`,
    ms: bytes,
    text: (bytes / 1e9).toFixed(3),
    from: 0,
    confidence: null,
  }));
}

/** What was alive at the allocator's peak, by the place in the program that asked for it. `part` is the GPU. */
export const memoryAllocationsChart: Chart<MemoryResult> = {
  height: (result, part) => floatingHeight(rowsOf(result, part)),
  build: (input) =>
    floatingBarsOption(input, rowsOf(input.result, input.part), {
      unit: 'GB',
      whole: 'the largest',
      colorOf: () => classColors.gemm,
    }),
};

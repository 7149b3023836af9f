import type { MemoryResult } from '../../../model/documents/memory-result.js';
import { componentLabels } from '../../../vocabulary/memory-components.js';
import type { Chart } from '../chart.js';
import { floating, type FloatingBar, floatingBarsOption, floatingHeight } from '../floating-bars.js';
import { componentColor } from './colors.js';

const gb = (bytes: number): string => (bytes / 1e9).toFixed(3).replace('-', '−');

function rowsOf({ profile }: MemoryResult): FloatingBar[] {
  const { components, total_measured_bytes: total } = profile.memory_breakdown;
  if (total === null || components.length === 0) return [];
  const bars = components.map(({ component, bytes, confidence, evidence }) => ({
    id: component,
    name: componentLabels[component],
    meaning: evidence[0] ?? '',
    ms: bytes,
    confidence,
  }));
  const texts = [...components.map(({ bytes }) => gb(bytes)), gb(total)];
  return floating(bars, { ms: total, meaning: 'the run’s own memory at its peak' }, texts);
}

/** From the weights to what was measured: each bar starts where the one before ended. */
export const memoryPartsChart: Chart<MemoryResult> = {
  height: (result) => floatingHeight(rowsOf(result)),
  build: (input) =>
    floatingBarsOption(input, rowsOf(input.result), {
      unit: 'GB',
      whole: 'what was measured',
      colorOf: componentColor,
    }),
};

import type { MemoryProfile } from '../model/documents/memory-profile.js';
import type { MemoryResult } from '../model/documents/memory-result.js';
import { formatPercent } from './format.js';
import { componentLabels } from '../vocabulary/memory-components.js';
import { gbText } from './memory-words.js';

/** How full, where it went, how it came: three sentences. */
export function memorySentences({ profile }: MemoryResult): string[] {
  const { memory_measurements: measured, memory_breakdown: parts } = profile;
  const { peak } = measured;
  const room = peak.per_gpu_details.reduce((sum, { total_bytes }) => sum + (total_bytes ?? 0), 0);
  const filled =
    peak.total_bytes !== null && room > 0
      ? ` of ${gbText(room / 1e9)} (${formatPercent(peak.total_bytes / room)})`
      : '';
  const total = parts.total_measured_bytes;
  const largest = parts.components
    .filter(({ component, bytes }) => component !== 'residual' && bytes > 0)
    .toSorted((a, b) => b.bytes - a.bytes)
    .slice(0, 3)
    .map(
      ({ component, bytes, gb }) =>
        `${componentLabels[component]} ${gbText(gb)}${total ? ` (${formatPercent(bytes / total)})` : ''}`,
    );
  return [
    peak.total_gb === null
      ? 'The peak was not measured.'
      : `At its peak ${gbText(peak.total_gb)}${filled} were in use.`,
    ...(largest.length > 0
      ? [`The run’s own ${gbText(parts.total_measured_gb)} are mostly ${largest.join(', ')}.`]
      : []),
    ...(measured.warmup_increase_gb !== null && measured.growth_gb !== null
      ? [
          `${gbText(measured.warmup_increase_gb)} came until the end of the warm-up, ${gbText(measured.growth_gb)} after it${withOthers(profile)}.`,
        ]
      : []),
  ];
}

/** The three points are of whole GPUs: where others were on them, their part is in it. */
export function withOthers({ metadata }: MemoryProfile): string {
  return metadata.issues.some(({ code }) => code === 'gpu_shared') ? ', of all processes on the GPU' : '';
}

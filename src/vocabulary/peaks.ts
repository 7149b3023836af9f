import type { Figure } from '../model/figure.js';
import { formatQuantity } from './format.js';

/** A name, and a peak of the device with its source. */
export type NamedPeak = readonly [name: string, peak: Figure];

/** "bfloat16", or "float32 as tfloat32" if matrix multiplications of the dtype ran as another one. */
export const peakName = (dtype: string, ranAs: string): string =>
  ranAs === dtype ? dtype : `${dtype} as ${ranAs}`;

/** "bandwidth (DRAM)", "bandwidth (L3)"; "bandwidth" is that of a GPU's memory. */
export const bandwidthName = (level: string | null): string =>
  level === null ? 'bandwidth' : `bandwidth (${level})`;

/**
 * "bfloat16 989 TFLOP/s, bandwidth 4.80 TB/s: data sheet", or the reason why a peak is unknown.
 * @param severalSources some peaks are measured and others from the data sheet; else the first source stands for all
 */
export function peakTexts(peaks: readonly NamedPeak[], { severalSources = false } = {}): string[] {
  const known: { value: string; source: string }[] = [];
  const unknown: string[] = [];
  for (const [name, peak] of peaks) {
    if (peak.value === null) unknown.push(`${name}: ${peak.reason.text}`);
    else known.push({ value: `${name} ${formatQuantity(peak.value, peak.unit)}`, source: peak.source });
  }
  const [first] = known;
  const joined =
    first && !severalSources
      ? [`${known.map(({ value }) => value).join(', ')}: ${first.source}`]
      : known.map(({ value, source }) => `${value}: ${source}`);
  return [...joined, ...unknown];
}

/** The sentence that names the peaks of a roofline where its times are; null without peaks. */
export const peaksSentence = (texts: readonly string[]): string | null =>
  texts.length === 0 ? null : `Roofline peaks: ${texts.join('; ')}.`;

import type { Figure } from '../model/figure.js';
import { formatQuantity } from './format.js';

/** A name, and a peak of the device with its source. */
export type NamedPeak = readonly [name: string, peak: Figure];

/** "bfloat16 989 TFLOP/s, bandwidth 4.80 TB/s: data sheet": each source once, or the reason why a peak is unknown. */
export function peakTexts(peaks: readonly NamedPeak[]): string[] {
  const texts: { values: string[]; source: string }[] = [];
  for (const [name, peak] of peaks) {
    const text = peak.value === null ? name : `${name} ${formatQuantity(peak.value, peak.unit)}`;
    const source = peak.value === null ? peak.reason.text : peak.source;
    const same = texts.find((other) => other.source.startsWith(source) || source.startsWith(other.source));
    if (!same) texts.push({ values: [text], source });
    else {
      same.values.push(text);
      if (source.length > same.source.length) same.source = source;
    }
  }
  return texts.map(({ values, source }) => `${values.join(', ')}: ${source}`);
}

/** The sentence that names the peaks of a roofline where its times are; null without peaks. */
export const peaksSentence = (texts: readonly string[]): string | null =>
  texts.length === 0 ? null : `Roofline peaks: ${texts.join('; ')}.`;

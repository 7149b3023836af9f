import type { Text, Value } from '../../views/text.js';
import { parts, valueText } from '../value.js';
import { color } from './color.js';
import { inert } from './text.js';

/** Text with its tones in color, on one line. */
export const coloredText = (text: Text): string =>
  parts(text)
    .map((part) => (typeof part === 'string' ? inert(part) : tone(part, inert(valueText(part)))))
    .join('');

function tone(value: Value, text: string): string {
  if (!('tone' in value)) return text;
  if (value.tone === 'fault') return color.yellow(text);
  if (value.tone === 'strong') return color.bold(text);
  return value.tone === 'dim' ? color.dim(text) : text;
}

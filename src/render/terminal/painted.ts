import type { Text, Value } from '../../views/text.js';
import { parts, valueText } from '../value.js';
import { colour } from './colour.js';
import { inert } from './text.js';

/** Text with its tones in color, on one line. */
export const painted = (text: Text): string =>
  parts(text)
    .map((part) => (typeof part === 'string' ? inert(part) : tone(part, inert(valueText(part)))))
    .join('');

function tone(value: Value, text: string): string {
  if (!('tone' in value)) return text;
  if (value.tone === 'fault') return colour.yellow(text);
  if (value.tone === 'strong') return colour.bold(text);
  return value.tone === 'dim' ? colour.dim(text) : text;
}

import { closest, distance } from 'fastest-levenshtein';

/** The name that was probably meant: at most two letters or two fifths of the word away. Null where none is near. */
export function nearest(word: string, names: readonly string[]): string | null {
  if (names.length === 0) return null;
  const found = closest(word, [...names]);
  return distance(word, found) <= Math.max(2, word.length * 0.4) ? found : null;
}

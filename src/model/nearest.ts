import { closest, distance } from 'fastest-levenshtein';

/** The name that was probably meant: the first that starts with it, else at most two letters or a fifth of the word away. */
export function nearest(word: string, names: readonly string[]): string | null {
  if (names.length === 0) return null;
  const longer = names.find((name) => word.length > 3 && name.startsWith(word));
  if (longer !== undefined) return longer;
  const found = closest(word, [...names]);
  return distance(word, found) <= Math.max(2, word.length * 0.2) ? found : null;
}

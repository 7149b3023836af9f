import { closest, distance } from 'fastest-levenshtein';

/** The name that was probably meant: the first with this prefix, else one at most two letters (one of a word of four) or a fifth of the word away. */
export function nearest(word: string, names: readonly string[]): string | null {
  if (names.length === 0) return null;
  const longer = names.find((name) => word.length > 3 && name.startsWith(word));
  if (longer !== undefined) return longer;
  const found = closest(word, [...names]);
  return distance(word, found) <= Math.max(word.length > 4 ? 2 : 1, word.length * 0.2) ? found : null;
}

/** Up to `most` names for an error message: those nearest to the typed word, else the first; "…" if there are more. */
export function nearestNames(names: readonly string[], name: string, most = 6): string {
  const word = name.toLowerCase();
  const near = names.filter((name) => name.startsWith(word.slice(0, 4)));
  const shown = (
    near.length > 0 ? near.toSorted((a, b) => distance(word, a) - distance(word, b)) : names
  ).slice(0, most);
  return `${shown.join(', ')}${names.length > shown.length ? ', …' : ''}`;
}

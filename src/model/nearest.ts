import { closest, distance } from 'fastest-levenshtein';

/** The name that was probably meant: the first that starts with it, else at most two letters or a fifth of the word away. */
export function nearest(word: string, names: readonly string[]): string | null {
  if (names.length === 0) return null;
  const longer = names.find((name) => word.length > 3 && name.startsWith(word));
  if (longer !== undefined) return longer;
  const found = closest(word, [...names]);
  return distance(word, found) <= Math.max(2, word.length * 0.2) ? found : null;
}

/** Up to six of many names for a message: the nearest to what was typed, else the first; "…" where there are more. */
export function someOf(names: readonly string[], typed: string, most = 6): string {
  const word = typed.toLowerCase();
  const near = names.filter((name) => name.startsWith(word.slice(0, 4)));
  const shown = (
    near.length > 0 ? near.toSorted((a, b) => distance(word, a) - distance(word, b)) : names
  ).slice(0, most);
  return `${shown.join(', ')}${names.length > shown.length ? ', …' : ''}`;
}

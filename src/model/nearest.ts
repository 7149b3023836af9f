import { closest, distance } from 'fastest-levenshtein';

/** The name that was probably meant: the first with this prefix, else the closest, at most two edits (one for up to four letters) or a fifth of the letters away. */
export function nearest(word: string, names: readonly string[]): string | null {
  if (names.length === 0) return null;
  const completion = names.find((name) => word.length > 3 && name.startsWith(word));
  if (completion !== undefined) return completion;
  const closestName = closest(word, [...names]);
  return distance(word, closestName) <= Math.max(word.length > 4 ? 2 : 1, word.length * 0.2)
    ? closestName
    : null;
}

/** Up to `max` names for an error message: those nearest to the typed word, else the first; "…" if there are more. */
export function nearestNames(names: readonly string[], name: string, max = 6): string {
  const word = name.toLowerCase();
  const near = names.filter((name) => name.startsWith(word.slice(0, 4)));
  const listed = (
    near.length > 0 ? near.toSorted((a, b) => distance(word, a) - distance(word, b)) : names
  ).slice(0, max);
  return `${listed.join(', ')}${names.length > listed.length ? ', …' : ''}`;
}

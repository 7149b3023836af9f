import { closest, distance } from 'fastest-levenshtein';

/**
 * The name that was probably meant, ignoring case: the first with this prefix of at least four letters, else the closest, at most two edits
 * (one for up to four letters) or a fifth of the letters away.
 */
export function nearest(word: string, names: readonly string[]): string | null {
  if (names.length === 0) return null;
  const typed = word.toLowerCase();
  const lower = names.map((name) => name.toLowerCase());
  const completion = lower.findIndex((name) => word.length > 3 && name.startsWith(typed));
  if (completion >= 0) return names[completion]!;
  const near = closest(typed, lower);
  return distance(typed, near) <= Math.max(word.length > 4 ? 2 : 1, word.length * 0.2)
    ? names[lower.indexOf(near)]!
    : null;
}

/**
 * Up to `max` names for an error message, then the number of the others: the name that was probably meant and those that start with the
 * first four letters of `name`, nearest first; without any, the first of all.
 */
export function nearestNames(names: readonly string[], name: string, max = 6): string {
  const word = name.toLowerCase();
  const changes = (name: string) => distance(word, name.toLowerCase());
  const meant = nearest(name, names);
  const near = names.filter((name) => name === meant || name.toLowerCase().startsWith(word.slice(0, 4)));
  const listed = (near.length > 0 ? near.toSorted((a, b) => changes(a) - changes(b)) : names).slice(0, max);
  return `${listed.join(', ')}${names.length > listed.length ? ` and ${names.length - listed.length} more` : ''}`;
}

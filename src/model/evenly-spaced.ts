/** At most `most` of `items`, evenly spaced, including first and last: a series for a table or a page. */
export function evenlySpaced<T>(items: readonly T[], most: number): T[] {
  if (items.length <= most) return [...items];
  const step = (items.length - 1) / (most - 1);
  return Array.from({ length: most }, (_, index) => items[Math.round(index * step)] as T);
}

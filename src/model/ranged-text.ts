const number = /\d+(?:\.\d+)?/g;

/** The same for texts that differ in their numbers only. */
export const withoutNumbers = (text: string): string => text.replaceAll(number, '0');

/** One text for several that differ in their numbers only: each number becomes "1.03 to 1.14" where they differ. */
export function rangedText(texts: readonly string[]): string {
  const found = texts.map((text) => text.match(number) ?? []);
  let at = 0;
  return (texts[0] ?? '').replaceAll(number, (own) => {
    const sorted = found.map((numbers) => numbers[at] ?? own).toSorted((a, b) => Number(a) - Number(b));
    at++;
    const [low = own, high = own] = [sorted[0], sorted.at(-1)];
    return low === high ? own : `${low} to ${high}`;
  });
}

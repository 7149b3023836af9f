const fillers = new Set(
  'a an and any are as at be been being by can could did do does for from get give had has have how i if in is it its let like make many me more most much my of on one or our out per should show so some take tell than that the their them then there these they this those to too up use used was we well were what when where which who why will with would you your time times mean'.split(
    ' ',
  ),
);

/** "launches" and "launch", "copies" and "copy", "syncs" and "synchronisation" meet. */
export function tokensOf(text: string): Set<string> {
  const words = text
    .toLowerCase()
    .replaceAll(/isation|ization/g, 'ize')
    .split(/[^\p{L}\d.]+/u)
    .flatMap((word) => (word.includes('.') && !/^\d/.test(word) ? word.split('.') : [word]));
  return new Set(
    words
      .filter((word) => word.length > 1 && !fillers.has(word))
      .map((word) => stem(word.replace(/\.$/, ''))),
  );
}

function stem(word: string): string {
  if (word.length <= 3) return word;
  if (word.endsWith('ies')) return `${word.slice(0, -3)}y`;
  const bare = word.replace(/(?:ing|ed|es|e|s)$/, '');
  return bare.length >= 3 ? bare : word;
}

/** Words of the question that a text holds, too. */
export function overlap(tokens: ReadonlySet<string>, text: string): number {
  const own = tokensOf(text);
  return [...tokens].filter((one) => own.has(one)).length;
}

/** 23.3 ms, 0.51 ms, 42.0 µs. */
export function msOf(ms: number): string {
  const size = Math.abs(ms);
  if (size >= 1000) return `${digits(ms / 1000)} s`;
  return size >= 0.1 || ms === 0 ? `${digits(ms)} ms` : `${digits(ms * 1000)} µs`;
}
const digits = (value: number): string =>
  value.toFixed(Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2);

/** 64 %, 3.5 %, 0.042 %: a share that is not zero is never printed as zero. */
export function percentOf(share: number): string {
  const size = Math.abs(share);
  if (size > 0 && size < 0.001) return `${Number((100 * share).toPrecision(2))} %`;
  return `${(100 * share).toFixed(size >= 0.1 || share === 0 ? 0 : 1)} %`;
}

export const gibOf = (bytes: number): string =>
  bytes >= 2 ** 30 ? `${(bytes / 2 ** 30).toFixed(2)} GiB` : `${(bytes / 2 ** 20).toFixed(1)} MiB`;

export const gbOf = (bytes: number): string =>
  bytes >= 1e9
    ? `${(bytes / 1e9).toFixed(bytes >= 1e11 ? 0 : 1)} GB`
    : `${(bytes / 1e6).toFixed(bytes >= 1e8 ? 0 : 1)} MB`;

/** As a sentence: a capital at its begin, a full stop at its end. */
export function ended(text: string): string {
  const sentence = text.trim().replace(/^\p{Ll}/u, (letter) => letter.toUpperCase());
  return /[.!?]$/.test(sentence) ? sentence : `${sentence}.`;
}

export const withoutEnd = (text: string): string => text.replace(/[.\s]+$/, '');

export const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

export const shortened = (name: string): string => (name.length > 70 ? `${name.slice(0, 69)}…` : name);

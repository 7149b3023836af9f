/** Matches each of the names as a whole word, in upper or lower case. */
export function wholeWords(names: readonly string[]): RegExp {
  const escaped = names.map((name) => name.replaceAll(/[\\^$.*+?()[\]{}|/]/g, String.raw`\$&`));
  return new RegExp(`(?<![\\w-])(?:${escaped.join('|')})(?![\\w-])`, 'gi');
}

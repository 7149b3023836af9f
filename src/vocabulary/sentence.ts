/** With a capital first letter; vLLM and cuBLAS keep theirs. */
export const capitalize = (text: string): string =>
  /^[a-z]+[A-Z]/.test(text) ? text : text.charAt(0).toUpperCase() + text.slice(1);

export const uncapitalize = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1);

/** Without full stops and spaces at the end. */
export const withoutEnd = (text: string): string => text.replace(/[.\s]+$/, '');

const joinWith = (word: string, words: readonly string[]): string =>
  words.length < 2 ? (words[0] ?? '') : `${words.slice(0, -1).join(', ')} ${word} ${words.at(-1)}`;

/** "a, b and c". */
export const joinWithAnd = (words: readonly string[]): string => joinWith('and', words);

/** "a, b or c". */
export const joinWithOr = (words: readonly string[]): string => joinWith('or', words);

/** A word as a POSIX shell takes it: quoted where it must be. */
export const shellWord = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;

/** A command line that a shell takes as it is. */
export const shellCommand = (words: readonly string[]): string => words.map(shellWord).join(' ');

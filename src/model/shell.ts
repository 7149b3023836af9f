/** A word as a POSIX shell takes it: quoted where it must be. */
export const shellWord = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;

/** A command line that a shell takes as it is. */
export const shellCommand = (words: readonly string[]): string => words.map(shellWord).join(' ');

const quoted = /\\([^])|'([^']*)'|"((?:[^"\\]|\\[^])*)"/g;

/** The words of a command line, as a POSIX shell takes quotes and backslashes; null where a quote does not end. */
export function shellWords(line: string): string[] | null {
  if (/['"\\]/.test(line.replaceAll(quoted, ''))) return null;
  const words = line.match(/(?:[^\s'"\\]|\\[^]|'[^']*'|"(?:[^"\\]|\\[^])*")+/g) ?? [];
  return words.map((word) =>
    word.replaceAll(
      quoted,
      (_, escaped?: string, single?: string, double?: string) =>
        escaped ?? single ?? double!.replaceAll(/\\([$`"\\])/g, '$1'),
    ),
  );
}

/** A word for a POSIX shell, quoted if necessary. */
export const shellWord = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;

/** A command line that can be pasted into a shell. */
export const shellCommand = (words: readonly string[]): string => words.map(shellWord).join(' ');

const quoted = /\\([^])|'([^']*)'|"((?:[^"\\]|\\[^])*)"/g;

/** The words of a command line, split like a POSIX shell by quotes and backslashes; null for an unclosed quote. */
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

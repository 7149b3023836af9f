import process from 'node:process';

/** Parser of a repeatable option: each value is added to the list. */
export const collect = (text: string, before: readonly string[] = []): string[] => [...before, text];

/** Whether the user typed `--` directly before these words; otherwise an option such as `--name` is ambiguous. */
export function areAfterDashes(words: readonly string[]): boolean {
  const argv = process.argv.slice(2);
  const index = argv.indexOf('--');
  return index >= 0 && argv.length - index - 1 === words.length;
}

/** A line of a log, as a terminal would show it. */
export interface LogLine {
  text: string;
  /** From 1, counting carriage returns as line ends. */
  number: number;
}

/** Colors and cursor movements, also in the form of log viewers: "^[[0;36m". */
// eslint-disable-next-line no-control-regex
const escapes = /(?:\u001b|\^\[)\[[0-9;?]*[A-Za-z]/g;

/** The text as a terminal without colors shows it. */
export function withoutColors(text: string): string {
  return text.includes('[') ? text.replace(escapes, '') : text;
}

/**
 * Lines without colors. A progress bar's carriage returns end lines, so that the text after a bar is a separate line.
 */
export function logLines(text: string): LogLine[] {
  return text
    .split(/\r\n|\n|\r/)
    .map((line, i) => ({ text: withoutColors(line), number: i + 1 }))
    .filter((line) => line.text.trim() !== '');
}

const maxCharacters = 280;

/** A line as evidence, truncated around the match: long lines contain whole configurations. */
export function excerpt(text: string, index: number, length: number): string {
  const line = text.trimEnd();
  if (line.length <= maxCharacters) return line.trim();
  const room = Math.max(0, maxCharacters - length);
  const start = Math.max(0, index - Math.floor(room / 2));
  const end = Math.min(line.length, index + length + Math.ceil(room / 2));
  return `${start > 0 ? '…' : ''}${line.slice(start, end).trim()}${end < line.length ? '…' : ''}`;
}

import type { ErrorCode, ErrorParts } from '../../model/errors.js';

/** Facts about an execution after it has exited. */
export interface Ended {
  execution_id: string;
  command: readonly string[];
  exit_code: number | null;
  signal: string | null;
  startError: string | null;
  timedOut: boolean;
  timeoutMs: number | null;
  /** The end of stdout and stderr, secrets replaced; profilers write there too. */
  output: string;
  tool: { name: string; version: string | null; path: string } | null;
  /** Free text of the program's log file, for messages. */
  log: string;
}

export interface Recognised {
  code: ErrorCode;
  parts: ErrorParts;
}

/** One known failure: its output pattern and its message. */
export interface Recogniser {
  id: string;
  /** Also when the program succeeded. */
  anyExit?: boolean;
  matches: (ended: Ended) => RegExpExecArray | boolean | null;
  explain: (ended: Ended, match: RegExpExecArray | null) => Recognised;
}

/** Matches by output. */
export const printed = (pattern: RegExp) => (ended: Ended) => pattern.exec(ended.output);
export const known = (code: ErrorCode, what: string, why: string, fix: string): Recognised => ({
  code,
  parts: { what, why, fix },
});
/** The line around a match, for quoting. */
export function line(ended: Ended, match: RegExpExecArray | null): string {
  if (!match) return '';
  const start = ended.output.lastIndexOf('\n', match.index) + 1;
  const end = ended.output.indexOf('\n', match.index);
  const text = ended.output.slice(start, end < 0 ? undefined : end).trim();
  return text.length > 400 ? `${text.slice(0, 400)} …` : text;
}

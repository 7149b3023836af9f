import type { ErrorCode, ErrorParts } from '../../model/errors.js';

/** What is known of an execution when it has ended. */
export interface Ended {
  execution_id: string;
  command: readonly string[];
  exit_code: number | null;
  signal: string | null;
  startError: string | null;
  timedOut: boolean;
  timeoutMs: number | null;
  /** The last of stdout and stderr, secrets replaced; profilers write there too. */
  output: string;
  tool: { name: string; version: string | null; path: string } | null;
  /** Free text of the program's log file, for messages. */
  log: string;
}

export interface Recognised {
  code: ErrorCode;
  parts: ErrorParts;
}

/** One known failure: what its output looks like, and what to say. */
export interface Recogniser {
  id: string;
  /** Also where the program ended well. */
  anyExit?: boolean;
  matches: (ended: Ended) => RegExpExecArray | boolean | null;
  explain: (ended: Ended, match: RegExpExecArray | null) => Recognised;
}

/** Recognises by what was said. */
export const said = (pattern: RegExp) => (ended: Ended) => pattern.exec(ended.output);
export const known = (code: ErrorCode, what: string, why: string, fix: string): Recognised => ({
  code,
  parts: { what, why, fix },
});
/** The whole line around a match, for quoting. */
export function line(ended: Ended, match: RegExpExecArray | null): string {
  if (!match) return '';
  const start = ended.output.lastIndexOf('\n', match.index) + 1;
  const end = ended.output.indexOf('\n', match.index);
  const text = ended.output.slice(start, end < 0 ? undefined : end).trim();
  return text.length > 400 ? `${text.slice(0, 400)} …` : text;
}

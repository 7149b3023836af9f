import type { ErrorCode, ErrorParts } from '../../model/errors.js';

/** Facts about an execution after it has exited. */
export interface EndedRun {
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
  /** Name of the log file that has the program's output, for messages. */
  log: string;
}

export interface Failure {
  code: ErrorCode;
  parts: ErrorParts;
}

/** One known failure: its output pattern and its message. */
export interface FailurePattern {
  id: string;
  /** Whether it also applies to a program that exited with 0. */
  anyExit?: boolean;
  matches: (ended: EndedRun) => RegExpExecArray | boolean | null;
  explain: (ended: EndedRun, match: RegExpExecArray | null) => Failure;
}

/** Matches by output. */
export const outputMatches = (pattern: RegExp) => (ended: EndedRun) => pattern.exec(ended.output);
export const failure = (code: ErrorCode, what: string, why: string, fix: string): Failure => ({
  code,
  parts: { what, why, fix },
});
/** The line around a match, for quoting. */
export function lineAround(ended: EndedRun, match: RegExpExecArray | null): string {
  if (!match) return '';
  const start = ended.output.lastIndexOf('\n', match.index) + 1;
  const end = ended.output.indexOf('\n', match.index);
  const text = ended.output.slice(start, end < 0 ? undefined : end).trim();
  return text.length > 400 ? `${text.slice(0, 400)} …` : text;
}

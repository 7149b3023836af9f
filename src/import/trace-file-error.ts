import { InferscopeError } from '../model/errors.js';
import { capital, withoutEnd } from '../vocabulary/sentence.js';

type TraceFileError = (path: string, why: string, cause?: unknown) => InferscopeError;

/**
 * E_TRACE_FILE of a format.
 * @param sort names the file in "cannot read the <sort> <path>"; null: only the path
 */
export const unreadableFile =
  (sort: string | null, fix: string): TraceFileError =>
  (path, why, cause) =>
    traceFileError(`cannot read ${sort === null ? '' : `the ${sort} `}${path}`, why, fix, cause);

/**
 * E_TRACE_FILE of a readable file that lacks what its importer needs.
 * @param lacks continues "<path> contains no …"
 */
export const containsNo =
  (lacks: string, fix: string): TraceFileError =>
  (path, why, cause) =>
    traceFileError(`${path} contains no ${lacks}`, why, fix, cause);

function traceFileError(what: string, why: string, fix: string, cause: unknown): InferscopeError {
  const sentence = capital(`${withoutEnd(why)}.`);
  return new InferscopeError('E_TRACE_FILE', { what, why: sentence, fix }, { cause });
}

import { InferscopeError } from '../model/errors.js';
import { capitalize, withoutEnd } from '../vocabulary/sentence.js';

type TraceFileError = (path: string, why: string, cause?: unknown) => InferscopeError;

/**
 * E_TRACE_FILE of a format.
 * @param fileKind names the file in "cannot read the <fileKind> <path>"; null: only the path
 */
export const unreadableFile =
  (fileKind: string | null, fix: string): TraceFileError =>
  (path, why, cause) =>
    traceFileError(`cannot read ${fileKind === null ? '' : `the ${fileKind} `}${path}`, why, fix, cause);

/**
 * E_TRACE_FILE of a readable file that lacks what its importer needs.
 * @param missing continues "<path> contains no …"
 */
export const containsNo =
  (missing: string, fix: string): TraceFileError =>
  (path, why, cause) =>
    traceFileError(`${path} contains no ${missing}`, why, fix, cause);

function traceFileError(what: string, why: string, fix: string, cause: unknown): InferscopeError {
  const sentence = capitalize(`${withoutEnd(why)}.`);
  return new InferscopeError('E_TRACE_FILE', { what, why: sentence, fix }, { cause });
}

import { unreadableFile } from '../trace-file-error.js';
import { InferscopeError, messageOf, systemErrorCode } from '../../model/errors.js';

/** A file that is not a PyTorch profiler trace, or is incomplete. */
export const damagedTrace = unreadableFile(
  'PyTorch trace',
  'Export it again with prof.export_chrome_trace("trace.json.gz"), and copy the file after the program has exited.',
);

export function truncatedTrace(path: string, cause?: unknown): InferscopeError {
  return damagedTrace(
    path,
    'It is incomplete: the file is cut off (the profiler was killed, or a copy stopped).',
    cause,
  );
}

/** A read failure as an error about the file. */
export function readFailure(path: string, error: unknown): unknown {
  if (error instanceof InferscopeError) return error;
  const code = systemErrorCode(error);
  if (code === 'ENOENT') return damagedTrace(path, 'There is no such file.', error);
  // zlib: "unexpected end of file" is Z_BUF_ERROR, a broken stream Z_DATA_ERROR.
  if (code === 'Z_BUF_ERROR') return truncatedTrace(path, error);
  if (code?.startsWith('Z_'))
    return damagedTrace(path, `Its gzip data is damaged: ${messageOf(error)}.`, error);
  return code ? damagedTrace(path, `${messageOf(error)}.`, error) : error;
}

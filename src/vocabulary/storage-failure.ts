import { withoutEnd } from './sentence.js';
import { existsSync, statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import { InferscopeError, isDiskFull, messageOf, systemErrorCode } from '../model/errors.js';
import { formatBytes } from './format.js';

interface StorageContext {
  /** The file or folder being written. */
  path: string;
  /** Completes "cannot …", e.g. "write the table kernels". */
  doing: string;
  neededBytes?: number | null;
  /** Whether the folder is inferscope's home, not an output path given by the user. */
  home?: boolean;
  /** What to type, if it is neither of the two usual fixes. */
  fix?: string;
}

const unwritable = new Set([
  'EROFS',
  'ENOTDIR',
  'EACCES',
  'EPERM',
  'ENOENT',
  'EEXIST',
  'EISDIR',
  'ELOOP',
  'ENAMETOOLONG',
]);

/** Whether the error is about a file that we read, not about the path that we write to. */
function isAboutAnotherFile(error: unknown, path: string): boolean {
  const named = (error as NodeJS.ErrnoException).path;
  return named !== undefined && !named.startsWith(path) && !path.startsWith(named);
}

/** Bytes that this user may still write on the disk of `path`, which need not exist yet; null if unknown. */
export function freeBytes(path: string): number | null {
  let folder = path;
  while (!existsSync(folder) && dirname(folder) !== folder) folder = dirname(folder);
  try {
    const found = statfsSync(folder);
    return found.bavail * found.bsize;
  } catch {
    return null;
  }
}

/**
 * Converts a failed write to E_DISK_FULL (with the needed size and path) or E_HOME_UNWRITABLE. Any other error, including our own, is
 * returned unchanged.
 */
export function asStorageFailure(error: unknown, context: StorageContext): unknown {
  if (error instanceof InferscopeError) return error;
  if (isDiskFull(error)) return diskFull(context, error);
  const code = systemErrorCode(error);
  if (!code || !unwritable.has(code) || isAboutAnotherFile(error, context.path)) return error;
  // Node's own messages start with the code.
  const message = messageOf(error).replace(`${code}: `, '');
  return new InferscopeError(
    'E_HOME_UNWRITABLE',
    {
      what: `cannot ${context.doing}: ${context.path} is ${code === 'EISDIR' ? 'a folder' : context.doing.startsWith('read') ? 'not readable' : 'not writable'}`,
      why: `The system reports ${code}: ${withoutEnd(message)}.`,
      fix:
        context.fix ??
        (context.home
          ? 'Choose another folder: INFERSCOPE_HOME=/a/writable/folder inferscope …'
          : 'Choose a path in a writable folder.'),
    },
    { cause: error },
  );
}

/** E_DISK_FULL for a write that failed or that is known not to fit. */
export function diskFull(context: StorageContext, cause?: unknown): InferscopeError {
  const free = freeBytes(context.path);
  const needed =
    context.neededBytes === undefined || context.neededBytes === null
      ? 'The required space is unknown'
      : `It needs ${formatBytes(context.neededBytes)}`;
  return new InferscopeError(
    'E_DISK_FULL',
    {
      what: `cannot ${context.doing}: no space left at ${context.path}`,
      why: `${needed}; ${free === null ? 'the free space could not be read' : `${formatBytes(free)} are free there`}.`,
      fix:
        context.fix ??
        (context.home
          ? 'Free space (inferscope session list shows sizes, session delete removes one), or set INFERSCOPE_HOME to a larger disk.'
          : 'Free space there, or choose a path on a larger disk.'),
    },
    { cause },
  );
}

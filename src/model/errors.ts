/** Exit codes; 1 is never an internal error of inferscope. */
export const exitCodes = {
  0: 'success',
  1: 'a check or gate failed',
  2: 'wrong usage',
  3: 'the environment lacks something',
  4: 'the workload failed',
  5: 'bad input file',
  70: 'a fault of inferscope itself',
  130: 'interrupted',
} as const;

/** Every error has a stable code, and every code has one exit code. */
export const exitCodeOf = {
  E_CHECK_FAILED: 1,

  E_USAGE: 2,
  E_LENGTHS: 2,
  E_DTYPE: 2,
  E_SESSION_NOT_FOUND: 2,
  E_SESSION_AMBIGUOUS: 2,
  E_SESSION_NAME: 2,
  E_SQL_STATEMENT: 2,
  E_SQL_QUERY: 2,
  E_SQL_LIMIT: 2,
  E_SQL_EXTENSION: 2,

  E_ENGINE_MISSING: 3,
  E_HOME_UNWRITABLE: 3,
  E_DISK_FULL: 3,
  E_DOCKER: 3,
  E_TOOL_MISSING: 3,
  E_TOOL_VERSION: 3,
  E_TOOL_FAILED: 3,
  E_NCU_PERMISSION: 3,
  E_PERMISSION: 3,
  E_PROCESS_START: 3,

  E_WORKLOAD_FAILED: 4,
  E_OUT_OF_MEMORY: 4,
  E_MODEL_ACCESS: 4,
  E_NO_KERNELS: 4,
  E_TIMEOUT: 4,
  E_SERVER_UNREACHABLE: 4,
  E_SERVER_RESPONSE: 4,

  E_CONFIG_FILE: 5,
  E_MODEL_NOT_FOUND: 5,
  E_MODEL_FILE: 5,
  E_MODEL_CONFIG: 5,
  E_MODEL_ARCHITECTURE: 5,
  E_RECORD_FILE: 5,
  E_TRACE_FILE: 5,
  E_TRACE_NEWER: 5,
  E_FORMAT_UNKNOWN: 5,
  E_SESSION_CORRUPT: 5,
  E_SESSION_NEWER: 5,
  E_SESSION_ARCHIVE: 5,

  E_INTERNAL: 70,
  E_INTERRUPTED: 130,
} as const satisfies Record<string, keyof typeof exitCodes>;

export type ErrorCode = keyof typeof exitCodeOf;

/** When each error occurs; the message itself has the file, the cause and the fix. */
export const errorMeanings: Readonly<Record<ErrorCode, string>> = {
  E_CHECK_FAILED:
    'a check or gate that was asked for failed, e.g. in `doctor`, `baseline check` or `bench compare`',
  E_USAGE: 'an unknown command, option or value, or options that exclude each other',
  E_LENGTHS:
    'prompt and output do not fit the context length of the model, or sizes are impossible or cannot be measured',
  E_DTYPE: 'the engine, model or device does not support the data type',
  E_SESSION_NOT_FOUND: 'no saved session matches the selector, or it does not hold what the command needs',
  E_SESSION_AMBIGUOUS: 'the selector matches several sessions',
  E_SESSION_NAME: 'the name of a session is taken or not allowed',
  E_SQL_STATEMENT: 'the statement is not a SELECT, or uses something that `sql` does not allow',
  E_SQL_QUERY: 'DuckDB refused the query: unknown column, wrong type, syntax',
  E_SQL_EXTENSION: 'DuckDB cannot load the extension named by --load-extension',
  E_SQL_LIMIT: 'the query exceeded its time or memory limit',
  E_ENGINE_MISSING: 'the engine that was asked for is not installed, or does not load',
  E_HOME_UNWRITABLE: 'the folder of sessions, or an output folder, cannot be written',
  E_DISK_FULL: 'the disk is full, or stdout could not be written',
  E_DOCKER: 'Docker or the container cannot be used',
  E_TOOL_MISSING: 'an external program, such as nsys, ncu or python3, was not found',
  E_TOOL_VERSION: 'an external program is too old for what was asked',
  E_TOOL_FAILED: 'an external program failed although the workload did not',
  E_NCU_PERMISSION: 'the driver does not allow this user to read GPU performance counters',
  E_PERMISSION: 'the operating system denied access',
  E_PROCESS_START: 'the program could not be started',
  E_WORKLOAD_FAILED: 'the program or engine exited with an error',
  E_OUT_OF_MEMORY: 'the workload ran out of GPU or host memory',
  E_MODEL_ACCESS: 'the model hub refused access, or could not be reached',
  E_NO_KERNELS: 'the profiler recorded no GPU work',
  E_TIMEOUT: 'the time limit that was set passed',
  E_SERVER_UNREACHABLE: 'the server did not accept a connection',
  E_SERVER_RESPONSE: 'the server answered with an error, or not by its protocol',
  E_CONFIG_FILE: 'a configuration or sweep file is not valid',
  E_MODEL_NOT_FOUND: 'no model has this name or path',
  E_MODEL_FILE: 'a model file is damaged or not readable',
  E_MODEL_CONFIG: 'the config.json of the model lacks a field or contradicts itself',
  E_MODEL_ARCHITECTURE: 'the architecture of the model is not supported',
  E_RECORD_FILE: 'a record file is not valid, or of a newer version',
  E_TRACE_FILE: 'a capture is damaged, cut off or empty',
  E_TRACE_NEWER: 'a capture is of a newer format than this version reads',
  E_FORMAT_UNKNOWN: 'no importer knows the file',
  E_SESSION_CORRUPT:
    'a file of the session is missing, changed or damaged, or in the form of another version',
  E_SESSION_NEWER: 'the session was written by a newer version',
  E_SESSION_ARCHIVE:
    'the archive of a session is damaged, does not have the files of its manifest, or has the id of another session',
  E_INTERNAL: 'a fault of inferscope: please report it with its stack',
  E_INTERRUPTED: 'stopped by Ctrl-C or a signal',
};

export interface ErrorParts {
  /** What failed, in one line, with the file, flag or session. */
  what: string;
  /** The cause, with the figures that show it. */
  why: string;
  /** What to type or change. */
  fix: string;
}

/** A known error in three parts. Thrown anywhere, caught once, in `cli/`. */
export class InferscopeError extends Error {
  readonly code: ErrorCode;
  readonly parts: ErrorParts;

  constructor(code: ErrorCode, parts: ErrorParts, options?: { cause?: unknown }) {
    super(parts.what, options);
    this.name = 'InferscopeError';
    this.code = code;
    this.parts = parts;
  }

  get exitCode(): number {
    return exitCodeOf[this.code];
  }
}

/** Code of a Node system error such as ENOSPC; null for other values. */
export function systemErrorCode(error: unknown): string | null {
  if (typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string') {
    return error.code;
  }
  return null;
}

/** Whether no space or no quota is left. */
export function isDiskFull(error: unknown): boolean {
  const code = systemErrorCode(error);
  // DuckDB passes on strerror's text without the code.
  return (
    code === 'ENOSPC' ||
    code === 'EDQUOT' ||
    /No space left on device|Disk quota exceeded/i.test(messageOf(error))
  );
}

export function messageOf(error: unknown): string {
  const code = systemErrorCode(error);
  if (code === 'EISDIR') return 'It is a folder.';
  // A program that cannot be started has the same code.
  if (code === 'ENOENT' && (error as { syscall?: string }).syscall === 'open')
    return 'There is no such file.';
  return error instanceof Error ? error.message : String(error);
}

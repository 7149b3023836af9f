/**
 * Every failure a user can meet has a stable code, and every code belongs to one of few exit codes:
 * 0 fine, 1 a check or gate failed, 2 wrong usage, 3 the environment lacks something, 4 the workload failed,
 * 5 bad input file, 70 a fault of inferscope itself, 130 interrupted.
 */
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
} as const;

export type ErrorCode = keyof typeof exitCodeOf;

export interface ErrorParts {
  /** What broke, one line, naming the file, flag or session. */
  what: string;
  /** Why: the cause, with the figures that show it. */
  why: string;
  /** What to type or change. */
  fix: string;
}

/** A known failure in three parts. Thrown anywhere, caught once, in `cli/`. */
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

/** Narrows an unknown thrown value to a Node system error such as ENOSPC. */
export function systemErrorCode(error: unknown): string | null {
  if (typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string') {
    return error.code;
  }
  return null;
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

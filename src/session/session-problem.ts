import { InferscopeError, messageOf } from '../model/errors.js';

/** Error for a session with files that changed since they were written. */
export function corrupt(id: string, what: string, why: string, cause?: unknown): InferscopeError {
  return new InferscopeError(
    'E_SESSION_CORRUPT',
    {
      what: `session ${id} is damaged: ${what}`,
      why,
      fix: `inferscope session verify ${id} checks every file; bring the folder back from a backup or an export, or type: inferscope session delete ${id}`,
    },
    { cause },
  );
}

/** Error for a session or file of a newer inferscope with another major version of its format. */
export function newer(what: string, found: number, known: number): InferscopeError {
  return new InferscopeError('E_SESSION_NEWER', {
    what: `${what} was written by a newer inferscope`,
    why: `Its format has major version ${found}; this inferscope reads up to ${known}.`,
    fix: 'Update inferscope, in its clone: git pull && npm ci && npm run build',
  });
}

/** Damage in a large table, which opening does not hash, appears when DuckDB reads its pages. */
export function asDamage(error: unknown, id: string): unknown {
  const text = messageOf(error);
  const damaged =
    /\.parquet|Parquet|ZSTD|TProtocolException|thrift/i.test(text) && !/Permission Error/.test(text);
  return damaged ? corrupt(id, 'a table cannot be read', text.split('\n')[0] ?? text, error) : error;
}

import type { DuckDBConnection } from '@duckdb/node-api';
import { messageOf } from '../model/errors.js';

/** Maximum factor by which the memory limit is raised. */
const maxRaiseFactor = 4;

/** The memory limit of a database that was set for an import. */
interface MemoryLimit {
  set(bytes: number): Promise<void>;
  /**
   * Raises a set limit after a failure for lack of memory. DuckDB spills but may still need more at once; some megabytes more are better than
   * a capture that cannot be read.
   * @returns whether the limit was raised, so that a retry may succeed
   */
  raise(error: unknown): Promise<boolean>;
}

export function memoryLimit(connection: DuckDBConnection): MemoryLimit {
  /** Null: the initial limit, which is not raised. */
  let setBytes: number | null = null;
  let raiseFactor = 1;
  const apply = async (bytes: number): Promise<void> => {
    const mebibytes = Math.round(bytes / 2 ** 20);
    await connection.run(`SET memory_limit = '${mebibytes}MiB'`);
  };
  return {
    async set(bytes) {
      setBytes = bytes;
      raiseFactor = 1;
      await apply(bytes);
    },
    async raise(error) {
      if (setBytes === null || raiseFactor >= maxRaiseFactor) return false;
      if (!/Out of Memory|ended before its last/.test(messageOf(error))) return false;
      raiseFactor *= 1.25;
      await apply(setBytes * raiseFactor);
      return true;
    },
  };
}

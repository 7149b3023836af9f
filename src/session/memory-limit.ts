import type { DuckDBConnection } from '@duckdb/node-api';
import { messageOf } from '../model/errors.js';

/** Maximum factor by which the memory limit is raised. */
const maxRaiseFactor = 4;

/** The memory limit of a database that was set for an import. */
export interface MemoryLimit {
  set(bytes: number): Promise<void>;
  /** How often the limit was raised, for `raise`. */
  raises(): number;
  /**
   * Raises a set limit after a failure for lack of memory. DuckDB spills but may still need more at once; some megabytes more are better than
   * a capture that cannot be read.
   * @param raisesBefore raises() when the failed statement started: after a raise for another statement, it is only repeated
   * @returns whether the limit is higher than then, so that a retry may succeed
   */
  raise(error: unknown, raisesBefore: number): Promise<boolean>;
}

export function memoryLimit(connection: DuckDBConnection): MemoryLimit {
  /** Null: the initial limit, which is not raised. */
  let setBytes: number | null = null;
  let raiseFactor = 1;
  let raises = 0;
  /** Raises wait for each other. */
  let lastRaise = Promise.resolve(false);
  const apply = async (bytes: number): Promise<void> => {
    const mebibytes = Math.round(bytes / 2 ** 20);
    await connection.run(`SET memory_limit = '${mebibytes}MiB'`);
  };
  async function raiseOnce(error: unknown, raisesBefore: number): Promise<boolean> {
    if (setBytes === null || !/Out of Memory|ended before its last/.test(messageOf(error))) return false;
    if (raises > raisesBefore) return true;
    if (raiseFactor >= maxRaiseFactor) return false;
    raiseFactor *= 1.25;
    await apply(setBytes * raiseFactor);
    raises++;
    return true;
  }
  return {
    async set(bytes) {
      setBytes = bytes;
      raiseFactor = 1;
      await apply(bytes);
    },
    raises: () => raises,
    raise(failure, raisesBefore) {
      const raised = lastRaise.then(() => raiseOnce(failure, raisesBefore));
      lastRaise = raised.catch(() => false);
      return raised;
    },
  };
}

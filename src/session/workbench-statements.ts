import type { DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import type { Batch, FileScan, RowTaker } from '../model/workbench.js';
import type { MemoryLimit } from './memory-limit.js';
import { scan } from './scan.js';
import { type ScanThread, startScanThread } from './scan-thread.js';

/** Smaller files are read before a thread has started. */
const scanThreadFromRows = 500_000;

/** Runs the statements of a workbench; when it closes, those that still run are interrupted. */
export interface WorkbenchStatements {
  /** Repeats a statement with more memory if it fails for lack of it. */
  withMemory<T>(statement: () => Promise<T>): Promise<T>;
  /** Gives a new connection, so that statements of one table do not wait for those of another. */
  withConnection<T>(work: (ownConnection: DuckDBConnection) => Promise<T>): Promise<T>;
  scan(sql: string): AsyncGenerator<Batch>;
  scanFiles<T, R>(order: FileScan<T>, taker: (input: T) => RowTaker<R>): Promise<R>;
  /**
   * Interrupts the statements and closes the first connection when all have ended.
   * @param closeOthers is waited for too before the first connection closes
   */
  close(closeOthers: () => Promise<unknown>): Promise<void>;
}

export function workbenchStatements(
  instance: DuckDBInstance,
  connection: DuckDBConnection,
  memory: MemoryLimit,
): WorkbenchStatements {
  const scans: ScanThread[] = [];
  const running = new Set<Promise<unknown>>();
  /** Connections with statements to interrupt on closing. */
  const connections = new Set([connection]);
  /** Closing a connection during its statement hangs DuckDB, so closing waits for it even if another statement fails. */
  async function trackUntilDone<T>(statement: Promise<T>): Promise<T> {
    running.add(statement);
    try {
      return await statement;
    } finally {
      running.delete(statement);
    }
  }
  /** Scans on a new connection: a stream ends when another statement runs on its connection. */
  async function* scanOnNewConnection(
    sql: string,
    canRetry?: (error: unknown) => Promise<boolean>,
  ): AsyncGenerator<Batch> {
    const ownConnection = await instance.connect();
    try {
      yield* scan(ownConnection, sql, canRetry);
    } finally {
      ownConnection.closeSync();
    }
  }
  return {
    async withMemory(statement) {
      for (;;) {
        const raisesBefore = memory.raises();
        try {
          return await trackUntilDone(statement());
        } catch (error) {
          if (!(await memory.raise(error, raisesBefore))) throw error;
        }
      }
    },
    async withConnection(work) {
      const ownConnection = await instance.connect();
      connections.add(ownConnection);
      try {
        return await work(ownConnection);
      } finally {
        connections.delete(ownConnection);
        ownConnection.closeSync();
      }
    },
    scan(sql) {
      let raisesBefore = memory.raises();
      return scanOnNewConnection(sql, async (error) => {
        const canRetry = await memory.raise(error, raisesBefore);
        raisesBefore = memory.raises();
        return canRetry;
      });
    },
    async scanFiles<T, R>(order: FileScan<T>, taker: (input: T) => RowTaker<R>) {
      if (order.rows >= scanThreadFromRows) {
        const thread = startScanThread(order);
        scans.push(thread);
        return (await thread.result) as R;
      }
      const { take, result } = taker(order.input);
      for await (const batch of scanOnNewConnection(order.sql)) take(batch);
      return result();
    },
    async close(closeOthers) {
      // An interrupt has no effect on a statement that is about to start, so repeat it.
      const interruptTimer = setInterval(() => connections.forEach((open) => open.interrupt()), 20);
      await Promise.allSettled([...running, closeOthers(), ...scans.map((scanThread) => scanThread.close())]);
      clearInterval(interruptTimer);
      connection.closeSync();
    },
  };
}

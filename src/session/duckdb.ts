import type * as DuckDB from '@duckdb/node-api';
import { createRequire } from 'node:module';

let loaded: typeof DuckDB | null = null;

/**
 * DuckDB's binding, loaded on first use. By `require`, since `import()` of a CommonJS package parses its hundred files once more to find
 * their exports: 0.27 s of CPU instead of 0.11 s in every command that opens a session (Node 20.20).
 */
export function duckdb(): typeof DuckDB {
  loaded ??= createRequire(import.meta.url)('@duckdb/node-api') as typeof DuckDB;
  return loaded;
}

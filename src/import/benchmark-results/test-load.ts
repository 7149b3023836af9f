import { join } from 'node:path';
import type { Row, TableName } from '../../model/tables.js';
import { identify } from '../identify.js';
import type { CaptureFacts, ImportOutcome } from '../importer.js';

export const fixture = (name: string): string => join('test/fixtures/benchmark-results-from-schema', name);

export interface LoadedResults {
  importer: string;
  facts: CaptureFacts;
  issues: ImportOutcome['issues'];
  metrics: Row<'metrics'>[];
  requests: Row<'requests'>[];
  iterations: Row<'iterations'>[];
  /** The single value of a metric with a source that starts with `from`. Throws if there is none or several. */
  value(name: string, statistic: string, from?: 'file' | 'recomputed', point?: number): number;
  names(point?: number): string[];
}

/** Identifies and loads a file like `inferscope import`. */
export async function loadResults(path: string, zero?: bigint): Promise<LoadedResults> {
  const rows = { metrics: [], requests: [], iterations: [] } as {
    metrics: Row<'metrics'>[];
    requests: Row<'requests'>[];
    iterations: Row<'iterations'>[];
  };
  const importer = await identify(path);
  const facts = await importer.facts(path, {} as never);
  const append = (table: TableName, row: object) =>
    void (rows[table as keyof typeof rows] as object[]).push(row);
  const { issues } = await importer.load(path, { sink: { append } } as never, {
    execution_id: 'e',
    capture_id: 'c',
    host: 'h',
    zero: { realtime_ns: zero ?? facts.realtime_zero_ns, monotonic_ns: null },
  });
  const pointMetrics = (point: number) => rows.metrics.filter((metric) => metric.point === point);
  return {
    importer: importer.name,
    facts,
    issues,
    ...rows,
    value(name, statistic, from = 'file', point = 0) {
      const matches = pointMetrics(point).filter(
        (row) => row.name === name && row.statistic === statistic && row.source!.startsWith(from),
      );
      if (matches.length !== 1) throw new Error(`${matches.length} of ${name} ${statistic} ${from}`);
      return matches[0]!.value!;
    },
    names: (point = 0) => [...new Set(pointMetrics(point).map(({ name }) => name!))].sort(),
  };
}

import { execFileSync, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import process from 'node:process';
import { expect, test, vi } from 'vitest';
import { packageRoot } from '../../src/model/installation.js';
import { writeKinetoRanks } from '../../src/record/ranks/test-ranks.js';
import { openSession } from '../../src/session/open.js';
import { inferscope, createSetup } from '../cli/run-cli.js';

const setup = createSetup();
vi.stubEnv('INFERSCOPE_HOME', setup.home);

/** The Python of npm run test:engines, with Polars, DuckDB, chDB and Spark. */
const python = process.env['INFERSCOPE_TEST_ENGINES_PYTHON'] ?? 'python3';

test('Polars, DuckDB, ClickHouse and Spark read the tables of a session in place, with equal sums', async () => {
  const traces = join(setup.scratch, 'traces');
  writeKinetoRanks(traces, { seed: 1, ranks: 4, slowRank: { rank: 2, us: 50 } });
  expect(inferscope(setup, ['import', traces, '--ranks', '--no-analyze', '--quiet']).status).toBe(0);
  const session = await openSession('@last');
  const database = await session.connect();
  const rows = async (sql: string) => (await database.query(sql)).map((row) => Object.values(row));
  const expected = {
    kernels: await rows(
      'SELECT rank, class, count(*) AS n, sum(dur_ns) AS dur_ns, sum(exclusive_ns) AS exclusive_ns FROM kernels GROUP BY ALL ORDER BY rank, class',
    ),
    collectives: (
      await rows(
        `SELECT sum(wire_ns)::BIGINT, sum(time_ns)::BIGINT FROM (SELECT min(dur_ns) * count(*) AS wire_ns, sum(dur_ns) AS time_ns FROM collectives GROUP BY communicator, operation, sequence)`,
      )
    )[0],
  };
  await database.close();
  expect(expected.kernels).toHaveLength(4 * 4);
  const sums: unknown = JSON.parse(
    execFileSync(python, ['-B', join(packageRoot(), 'test', 'engines', 'sums.py'), session.folder], {
      encoding: 'utf8',
    }),
  );
  // Without a Java runtime run.mjs has reported that Spark is not tested.
  const spark = spawnSync('java', ['-version']).error === undefined ? { spark: expected } : {};
  expect(sums).toEqual({ polars: expected, duckdb: expected, chdb: expected, ...spark });
});

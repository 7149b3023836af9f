import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Database, openDatabase } from '../../session/database.js';
import { queryRows } from '../../session/query.js';
import { queryDurations, spreadColumns, spreadOf } from './spread.js';

let database: Database;
beforeAll(async () => {
  database = await openDatabase();
});
afterAll(() => database.close());

const spreadOfValues = async (values: string) => {
  const statements: string[] = [];
  const query = async (sql: string) => {
    statements.push(sql);
    return queryRows(database.connection, sql, []) as Promise<never[]>;
  };
  const [row] = await queryDurations<object>(
    { query },
    (type) => `SELECT ${spreadColumns('ns', '', type)} FROM (SELECT unnest([${values}])::BIGINT AS ns)`,
  );
  return { spread: spreadOf(row!), statements: statements.length };
};

test('stores durations under 2.1 s in 32 bits and longer ones in 64, with the same spread', async () => {
  // Squared deviations from the mean of 40 are 900 + 100 + 1600, over n − 1.
  expect(await spreadOfValues('10, 30, 80, NULL')).toEqual({
    spread: {
      count: 3,
      total_ns: 120,
      mean_ns: 40,
      median_ns: 30,
      min_ns: 10,
      max_ns: 80,
      sd_ns: Math.sqrt(2600 / 2),
    },
    statements: 1,
  });
  const spread = await spreadOfValues('5000000000, 7000000000');
  expect(spread.spread).toMatchObject({ median_ns: 6e9, max_ns: 7e9, sd_ns: Math.sqrt(2) * 1e9 });
  expect(spread.statements).toBe(2);
  expect((await spreadOfValues('-5, 2147483648')).spread).toMatchObject({
    median_ns: 1073741821.5,
    min_ns: -5,
  });
  expect((await spreadOfValues('NULL')).spread).toBeNull();
});

test('a statement that fails for another reason is not run twice', async () => {
  let statements = 0;
  const query = async () => {
    statements++;
    return queryRows(database.connection, 'SELECT * FROM missing_table', []) as Promise<never[]>;
  };
  await expect(queryDurations({ query }, (type) => type)).rejects.toThrow('missing_table');
  expect(statements).toBe(1);
});

import { expect, test } from 'vitest';
import { openSession } from './open.js';
import { testHome } from './test-folder.js';
import { saveSession } from './test-session.js';

const home = testHome();

/** nextval counts how often a statement's rows are computed. */
const numberedSql = "SELECT op_id, nextval('computed') AS nth FROM ops WHERE op_id = 1";

test('connections share the tables of one database; temporary tables are per connection', async () => {
  const { id } = await saveSession(home);
  const session = await openSession(id, home);
  const [one, two] = [await session.connect(), await session.connect()];
  await one.query('CREATE SEQUENCE computed');
  await one.once('first', 'key', numberedSql);
  await two.once('first', 'key', numberedSql);
  await two.once('other', 'another key', numberedSql);
  expect(await one.query('FROM first')).toEqual([{ op_id: 1, nth: 1 }]);
  expect(await two.query('FROM first')).toEqual([{ op_id: 1, nth: 1 }]);
  expect(await two.query('FROM other')).toEqual([{ op_id: 1, nth: 2 }]);

  await one.query('CREATE TEMP TABLE own AS SELECT 1 AS a');
  await two.query('CREATE TEMP TABLE own AS SELECT 2 AS a');
  expect(await one.query('FROM own')).toEqual([{ a: 1 }]);
  await one.close();
  expect(await two.query('FROM own')).toEqual([{ a: 2 }]);
  await two.close();

  const fresh = await session.connect();
  expect(await fresh.query("SELECT table_name FROM duckdb_tables() WHERE table_name LIKE 'made_%'")).toEqual(
    [],
  );
  await fresh.close();
});

import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createSession } from './create.js';
import { openSession } from './open.js';
import { testHome } from './test-folder.js';
import { summary } from './test-session.js';
import { verifySession } from './verify.js';

const home = testHome();

test('damage in a table too large to hash on opening is reported as damage when a query reads it', async () => {
  const writer = await createSession({ label: 'large', kind: 'import', home });
  // Random doubles do not compress: more than 32 MiB of Parquet.
  for (let i = 0; i < 4_800_000; i++)
    writer.sink.append('telemetry', { capture_id: 'c0', t_ns: i, value: Math.random() });
  const large = await writer.finish(summary);
  const path = join(large.folder, 'tables/telemetry/c0.parquet');
  expect(statSync(path).size).toBeGreaterThan(32 * 2 ** 20);
  const bytes = readFileSync(path);
  bytes.fill(0xff, 1000, 200_000);
  writeFileSync(path, bytes);
  const database = await (await openSession(large.id, home)).connect();
  await expect(database.query('SELECT sum(value), sum(t_ns) FROM telemetry')).rejects.toMatchObject({
    code: 'E_SESSION_CORRUPT',
  });
  await database.close();
  expect((await verifySession(large)).ok).toBe(false);
  rmSync(large.folder, { recursive: true });
  // Takes 4 s alone; on two busy cores it took more than the minute that other tests have.
}, 300_000);

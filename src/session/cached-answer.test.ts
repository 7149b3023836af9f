import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { z } from 'zod';
import type { Session } from './open.js';
import { cachedAnswer } from './cached-answer.js';
import { testFolder } from './test-folder.js';

const schema = z.object({ kernels: z.number() });

/** The parts of a session that `cachedAnswer` reads. */
function session(rows: number, name: string | null = null, sha256 = 'a'): Session {
  const file = {
    path: 'tables/kernels/nsys.parquet',
    bytes: 1,
    sha256: '0'.repeat(64),
    capture_id: 'nsys',
    rows,
  };
  const manifest = { tables: { kernels: [file] } } as unknown as Session['manifest'];
  return { folder, sha256, manifest, user: { name, tags: [], notes: [] } } as unknown as Session;
}
const folder = testFolder();
let computed = 0;
const count = () => Promise.resolve({ kernels: ++computed });

test('computes the answer for a large session once, until the session, its name or the file changes', async () => {
  const large = session(600_000);
  expect(await cachedAnswer(large, 'trace', schema, count)).toEqual({ kernels: 1 });
  expect(await cachedAnswer(large, 'trace', schema, count)).toEqual({ kernels: 1 });
  expect(await cachedAnswer(session(600_000, 'b1'), 'trace', schema, count)).toEqual({ kernels: 2 });
  expect(await cachedAnswer(session(600_000, 'b1', 'b'), 'trace', schema, count)).toEqual({ kernels: 3 });

  const path = join(folder, 'derived', 'trace.json');
  const stored = JSON.parse(readFileSync(path, 'utf8')) as { key: string };
  writeFileSync(path, JSON.stringify({ ...stored, answer: { kernels: 'many' } }));
  expect(await cachedAnswer(session(600_000, 'b1', 'b'), 'trace', schema, count)).toEqual({ kernels: 4 });
  writeFileSync(path, '{"key": "cut');
  expect(await cachedAnswer(session(600_000, 'b1', 'b'), 'trace', schema, count)).toEqual({ kernels: 5 });
});

test('computes the answer for a small session every time, and writes nothing to a read-only folder', async () => {
  computed = 0;
  await cachedAnswer(session(100), 'small', schema, count);
  await cachedAnswer(session(100), 'small', schema, count);
  expect(computed).toBe(2);
  expect(existsSync(join(folder, 'derived', 'small.json'))).toBe(false);

  const blocked = { ...session(600_000), folder: join(testFolder(), 'file') };
  writeFileSync(blocked.folder, '');
  expect(await cachedAnswer(blocked, 'trace', schema, count)).toEqual({ kernels: 3 });
});

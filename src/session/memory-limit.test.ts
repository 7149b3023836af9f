import { expect, test } from 'vitest';
import { openDatabase } from './database.js';
import { memoryLimit } from './memory-limit.js';

const outOfMemory = new Error('Out of Memory Error: failed to allocate');

test('raises a set limit by a quarter per failure, up to four times, once for statements that fail together', async () => {
  const { connection, close } = await openDatabase({ memoryLimitBytes: 512 * 2 ** 20 });
  const limit = async () => {
    const result = await connection.runAndReadAll("SELECT current_setting('memory_limit')");
    return String(result.getRowsJS()[0]![0]);
  };
  const memory = memoryLimit(connection);
  const initial = await limit();
  expect(await memory.raise(outOfMemory, 0)).toBe(false);
  expect(await limit()).toBe(initial);

  await memory.set(64 * 2 ** 20);
  const before = memory.raises();
  expect(await memory.raise(new Error('Parser Error'), before)).toBe(false);
  expect(await Promise.all([memory.raise(outOfMemory, before), memory.raise(outOfMemory, before)])).toEqual([
    true,
    true,
  ]);
  expect(await limit()).toBe('80.0 MiB');
  let raises = 1;
  while (await memory.raise(outOfMemory, memory.raises())) raises++;
  expect(1.25 ** raises).toBeGreaterThanOrEqual(4);
  expect(1.25 ** (raises - 1)).toBeLessThan(4);
  await close();
});

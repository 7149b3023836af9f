import { expect, test } from 'vitest';
import { testHome } from '../../session/test-folder.js';
import { readHotKernels } from './hot-kernels.js';
import { kernel, sessionOf } from './test-hand.js';
import { fixture, imported } from './test-import.js';

test('returns the kernels with the most time of each stage, without warm-up', async () => {
  const session = await imported(testHome(), 'nsys-sqlite', fixture('nsys-2025.3.1-h200/tiny-whole.sqlite'));
  const { names, stages } = await readHotKernels(session);
  const database = await session.connect();
  try {
    const rows = await database.query<{ name: string; ns: number; kind: string | null; warmup: boolean }>(
      `SELECT k.name, k.dur_ns::DOUBLE AS ns, p.kind, coalesce(p.warmup, false) AS warmup FROM kernels k
       LEFT JOIN stages s USING (capture_id, stage_id) LEFT JOIN stages p ON p.capture_id = s.capture_id AND p.stage_id = s.phase_id`,
    );
    const decode = new Map<string, number>();
    for (const { name, ns, kind } of rows)
      if (kind === 'decode') decode.set(name, (decode.get(name) ?? 0) + ns);
    const longest = [...decode].toSorted(([, a], [, b]) => b - a).slice(0, 8);
    expect(longest.length).toBeGreaterThan(3);
    for (const [name] of longest) expect(names).toContain(name);
    expect(stages).toContain('decode');
    expect(stages).not.toContain('warmup');
  } finally {
    await database.close();
  }
});

test('without stages all kernels count; without kernels it is an error', async () => {
  const plain = await sessionOf({ kernels: [kernel(null, 0, 10), kernel(null, 20, 5)] });
  expect((await readHotKernels(plain)).stages).toEqual(['other']);
  await expect(readHotKernels(await sessionOf({ kernels: [] }))).rejects.toMatchObject({
    code: 'E_NO_KERNELS',
  });
});

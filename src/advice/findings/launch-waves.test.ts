import { afterAll, expect, test } from 'vitest';
import { importSession } from '../../session/archive-import.js';
import { openSession } from '../../session/open.js';
import type { SessionDatabase } from '../../session/query.js';
import { testHome } from '../../session/test-folder.js';
import { blocksPerSm, wavesOf } from './launch-waves.js';

const home = testHome();
let database: SessionDatabase | null = null;
afterAll(() => database?.close());

test("waves of a kernel equal Nsight Compute's", async () => {
  const { id } = await importSession('test/fixtures/diagnosis/wave_quantization-fault.tgz', home);
  const opened = await (await openSession(id, home)).connect();
  database = opened;
  const [launch] = await opened.query<{ blocks: number; threads: number; registers: number; shared: number }>(
    `SELECT try_cast(split_part(grid, ',', 1) AS INTEGER) * try_cast(split_part(grid, ',', 2) AS INTEGER) AS blocks,
            try_cast(split_part("block", ',', 1) AS INTEGER) AS threads, registers, shared_mem_bytes AS shared
     FROM kernels WHERE class = 'gemm' ORDER BY dur_ns DESC LIMIT 1`,
  );
  const [recorded] = await opened.query<{ waves: number }>(
    "SELECT max(value) AS waves FROM counters WHERE metric = 'launch__waves_per_multiprocessor'",
  );
  const computed = wavesOf({ ...launch!, shared_mem_bytes: launch!.shared }, 132, '9.0');
  expect(launch!.blocks).toBe(136);
  expect(computed!.waves).toBeCloseTo(recorded!.waves, 2);
  // 136 tiles in two waves of 132.
  expect(computed!.efficiency).toBeCloseTo(136 / 264, 6);
});

test('the scarcest of registers, shared memory, threads and blocks limits the blocks of a multiprocessor', () => {
  const launch = { blocks: 1, threads: 256, registers: 32, shared_mem_bytes: 0 };
  expect(blocksPerSm(launch, '9.0')).toBe(8);
  // 8 warps of 128 × 32 registers: 32 768 of 65 536.
  expect(blocksPerSm({ ...launch, registers: 128 }, '9.0')).toBe(2);
  // 101 KiB with the driver's part: two of them fit in 228 KiB.
  expect(blocksPerSm({ ...launch, shared_mem_bytes: 100 * 1024 }, '9.0')).toBe(2);
  // Before compute capability 8 the driver reserves none: two of 32 KiB in 64 KiB.
  expect(blocksPerSm({ ...launch, shared_mem_bytes: 32 * 1024 }, '7.5')).toBe(2);
  expect(blocksPerSm({ ...launch, threads: 32 }, '8.6')).toBe(16);
  expect(blocksPerSm(launch, null)).toBeNull();
});

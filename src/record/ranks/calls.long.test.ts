import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { recordedCallsSql } from '../../model/collectives.js';
import { importSession } from '../../session/archive-import.js';
import { quote } from '../../session/database.js';
import { openSession } from '../../session/open.js';
import { createStaging } from '../../session/staging.js';
import { testFolder } from '../../session/test-folder.js';
import { saveCalls } from './calls.js';

/** Saves the collectives of vLLM on two H200 from its kernels and the calls of NCCL that launched some of them. */
async function callsOf(kernelsWhere = 'true') {
  const folder = testFolder();
  vi.stubEnv('INFERSCOPE_HOME', join(folder, 'home'));
  const { id } = await importSession('test/fixtures/vllm-tp2-h200/tp2.tgz');
  const session = await openSession(id);
  const files = (table: string) =>
    `read_parquet([${session.manifest.tables[table]!.map(({ path }) => quote(join(session.folder, path))).join(', ')}])`;
  const capture = session.manifest.captures.find(({ capture_id }) => capture_id.startsWith('nsys'))!;
  mkdirSync(join(folder, 'staged'));
  const staging = await createStaging({ folder: join(folder, 'staged'), spillFolder: folder });
  const { workbench } = staging;
  const constants = { execution_id: capture.execution_id, host: 'h' };
  await workbench.save(
    'kernels',
    capture.capture_id,
    `SELECT * FROM ${files('kernels')} WHERE ${kernelsWhere}`,
    constants,
  );
  await workbench.run(recordedCallsSql);
  await workbench.run(
    `INSERT INTO recorded_calls BY NAME SELECT '${capture.capture_id}' AS capture_id, true AS on_host, k.api_start_ns - 500 AS start_ns, 1000 AS dur_ns, k.pid, k.tid,
       c.communicator, c.ranks, c.operation, c.sequence, c.bytes
     FROM ${files('collectives')} c JOIN ${files('kernels')} k ON k.start_ns = c.start_ns AND k.rank = c.rank AND k.class = 'communication'`,
  );
  const result = await saveCalls(workbench, [capture], { isPart: false });
  await workbench.flush();
  const rows = await workbench.query<{ communicator: string; operation: string; ranks: number; n: number }>(
    `SELECT communicator, operation, any_value(ranks) AS ranks, count(*) AS n FROM ${workbench.savedRows('collectives', [capture.capture_id])} GROUP BY ALL ORDER BY n`,
  );
  await staging.close();
  return { result, rows };
}

test("vLLM's own all-reduce, which has no call of NCCL, is paired by its order on both ranks", async () => {
  const { result, rows } = await callsOf();
  expect(result).toEqual({
    calls: {
      executions: [{ execution_id: 'nsys', known_by: 'call', calls: 2920 }],
      processes: 2,
    },
    ranks: [0, 1],
  });
  // 1292 = 76 steps of 17: two per layer and one after the embedding.
  expect(rows).toEqual([
    { communicator: '2865224455051517065', operation: 'AllGather', ranks: 2, n: 2 * 82 },
    { communicator: '2865224455051517065', operation: 'AllReduce', ranks: 2, n: 2 * 86 },
    { communicator: 'cross_device_reduce_1stage', operation: 'AllReduce', ranks: 2, n: 2 * 1292 },
  ]);
});

test('kernels without a call are left out if their number differs between ranks', async () => {
  const { rows } = await callsOf(
    "NOT (rank = 1 AND short_name = 'cross_device_reduce_1stage' AND start_ns % 7 = 0)",
  );
  expect(rows.map(({ communicator }) => communicator)).not.toContain('cross_device_reduce_1stage');
});

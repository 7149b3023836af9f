import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { resultsDocumentSchema } from '../../model/documents/results.js';
import type { Row } from '../../model/tables.js';
import { homeFolders } from '../../session/home.js';
import { type Rows, sessionOf } from '../test-session.js';
import { analyzeResults } from './results.js';

const root = mkdtempSync(join(tmpdir(), 'inferscope-results-'));
const home = homeFolders({ INFERSCOPE_HOME: root });
afterAll(() => rmSync(root, { recursive: true }));
const sessionWith = (rows: Rows) => sessionOf(home, rows, { kind: 'import' });

const metric = (change: Row<'metrics'>): Row<'metrics'> => ({
  point: 0,
  label: 'rate inf',
  name: 'ttft',
  same_definition: true,
  statistic: 'mean',
  value: 10,
  unit: 'ms',
  n: 2,
  definition: 'd',
  source: 'file: mean_ttft_ms',
  ...change,
});

test("lists the tool's figure and the recomputed one, inferscope's metrics first, without warm-up requests", async () => {
  const session = await sessionWith({
    metrics: [
      metric({ name: 'vllm.itl', same_definition: false }),
      metric({ name: 'e2e' }),
      metric({}),
      metric({ value: 11, source: 'recomputed from 2 requests' }),
    ],
    requests: [{ status: 'ok' }, { status: 'ok', warmup: true }, { status: 'failed' }],
  });
  const results = resultsDocumentSchema.parse(await analyzeResults(session)).data;
  expect(results.captures).toHaveLength(1);
  const [point] = results.captures[0]!.points;
  expect(point!.requests).toEqual({ ok: 1, failed: 1 });
  expect(point!.metrics.map(({ name }) => name)).toEqual(['ttft', 'e2e', 'vllm.itl']);
  expect(point!.metrics[0]).toMatchObject({
    file: [{ statistic: 'mean', value: 10 }],
    recomputed: [{ statistic: 'mean', value: 11 }],
  });
});

test('a session without results has no results document', async () => {
  await expect(analyzeResults(await sessionWith({ requests: [{ status: 'ok' }] }))).rejects.toMatchObject({
    code: 'E_USAGE',
  });
});

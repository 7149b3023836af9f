import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { explainSession } from '../../advice/explain/explain.js';
import { analyzeCollectives } from '../../facts/collectives/collectives.js';
import { importSession } from '../../session/archive-import.js';
import { openSession } from '../../session/open.js';
import { testFolder } from '../../session/test-folder.js';

test('the workers of vLLM with tensor parallelism are the ranks of one session', async () => {
  vi.stubEnv('INFERSCOPE_HOME', join(testFolder(), 'home'));
  const { id } = await importSession('test/fixtures/vllm-tp2-h200/tp2.tgz');
  const session = await openSession(id);
  const { job } = (await analyzeCollectives(session)).data;
  expect(job).toMatchObject({ world_size: 2, missing: [], ranks: [{ rank: 0 }, { rank: 1 }] });
  const { stages, findings } = (await explainSession(session)).data;
  // 3 calls of generate: a prefill and a step with both kinds of tokens, then decode steps until every sequence has 24 tokens.
  expect(stages.map(({ kind, instances }) => [kind, instances])).toEqual(
    expect.arrayContaining([
      ['prefill', 3],
      ['mixed', 3],
      ['decode', 72],
    ]),
  );
  const launches = findings.find(({ id: finding }) => finding === 'launch_bound:decode');
  expect(launches!.change.text).toContain('vLLM replays the model as a CUDA graph already');
});

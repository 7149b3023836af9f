import { expect, test } from 'vitest';
import { homeFolders } from '../../session/home.js';
import { importSession } from '../../session/archive-import.js';
import { openSession } from '../../session/open.js';
import { testFolder } from '../../session/test-folder.js';
import { whatIf } from './what-if.js';

test('GEMMs that ran as TF32 do so on another GPU, from which a change of dtype starts', async () => {
  const home = homeFolders({ INFERSCOPE_HOME: testFolder() });
  const { id } = await importSession('test/fixtures/diagnosis/tf32_prefill-fault.tgz', home);
  const session = await openSession(id, home);
  const { stages } = (await whatIf(session, ['gpu=H100', 'dtype=float16'])).data;
  const gemm = stages[0]!.bars.find((bar) => bar.id === 'inefficiency.gemm')!;
  // TF32 has half the rate of 16 bits, and the same on both data sheets.
  expect(gemm.explanation).toMatch(/^its roofline × 0\.500: /);
  expect(stages[0]!.bars.find(({ id }) => id === 'roofline')!.explanation).toContain(
    'data-sheet peaks of NVIDIA H100 80GB HBM3, which was not measured',
  );
});

import { expect, test } from 'vitest';
import { readGemmRoofs, analyzeGemms } from '../facts/gemms/gemms.js';
import { fixture, imported } from '../facts/trace/test-import.js';
import { exampleGpuRoofline } from '../model/documents/test-gpu-roofline.js';
import { testHome } from '../session/test-folder.js';
import { gemmSections } from './gemms-page.js';

test('measured roofs are drawn for types of which bandwidth limits every GEMM', async () => {
  const session = await imported(testHome(), 'kineto', fixture('kineto-torch2.11-h200/kineto-tiny.json.gz'));
  const measured = {
    ...session,
    user: { ...session.user, context: { roofline: exampleGpuRoofline() } },
  } as typeof session;
  const found = await analyzeGemms(measured, { stage: 'decode' });
  expect(new Set(found.data.gemms.map(({ roof }) => roof?.bound))).toEqual(new Set(['memory']));
  const roofs = await readGemmRoofs(measured, found.data.gemms);
  const [chart] = gemmSections(found, roofs, () => undefined)[0]!.blocks;
  expect(chart).toMatchObject({
    type: 'chart',
    chart: {
      slopes: [{ bytes_per_s: 4e12 }],
      // The measured roofline has no float16, so its peak is the data sheet's.
      peaks: [
        { dtype: 'float16', flops_per_s: 989e12 },
        { dtype: 'float32', flops_per_s: 50e12 },
      ],
    },
  });
});

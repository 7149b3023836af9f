import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { findPreset } from '../llm/presets.js';
import { predictSummary } from '../report/terminal/predict.js';
import { testFolder } from '../session/test-folder.js';
import { chooseCases } from './kernels-cases.js';
import { predicted } from './predict-run.js';

test('the peak has the dtype of the products: NVFP4 on a B300', async () => {
  const document = await predicted({ model: 'gpt-oss-20b', gpu: 'B300', dtype: 'nvfp4', kernels: [] });
  // An eighth of the 108 dense PFLOP/s of a board.
  expect(document.data.device.peak_flops_per_s.value).toBe(108e15 / 8);
  expect(document.data.device.peak_dtype).toBe('nvfp4');
  expect(predictSummary(document, { width: 80 })).toContain('13.5 PFLOP/s nvfp4');
});

test('keys of a config that its family does not read are warned of', async () => {
  const folder = testFolder();
  const config = { ...findPreset('llama-3.2-1b')!.config, num_local_experts: 8 };
  writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
  const protocol = { runs: 1, maxSeconds: 1, check: false, graph: false, seed: 0 };
  const typed = { ...protocol, fromModel: folder, tag: [], output: folder };
  const { issues: ofKernels } = await chooseCases([], typed, { gpu: true, dtypes: ['bfloat16'] });
  const { issues: ofPrediction } = await predicted({ model: folder, gpu: 'H200', kernels: [] });
  for (const issues of [ofKernels, ofPrediction])
    expect(issues).toContainEqual(
      expect.objectContaining({
        code: 'config_keys_unread',
        text: expect.stringContaining('num_local_experts'),
      }),
    );
});

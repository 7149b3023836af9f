import { expect, test } from 'vitest';
import { tinyConfig, tinyWorkload } from '../test-session.js';
import { dtypesOfRun } from './dtypes.js';
import { modelOf } from './model-info.js';
import { gpuPoints } from './points.js';
import { planOf, rowsOf } from './test-run.js';

test('a typed dimension that contradicts the config is reported under the name that the config uses', () => {
  const { num_attention_heads: heads, num_hidden_layers: layers, ...others } = tinyConfig;
  const tiny = tinyWorkload();
  const workload = {
    ...tiny,
    model: { ...tiny.model!, config: { ...others, n_head: heads, n_layer: layers } },
  };
  const { given } = planOf();
  const { issues, info } = modelOf(workload, planOf({ given: { ...given, num_layers: 3 } }));
  expect(issues.map(({ text }) => text)).toEqual([
    "--num-layers 3 contradicts the model's config (n_layer 2): the typed value is used.",
  ]);
  expect(info).toMatchObject({ num_layers: 3, sources: { num_layers: 'flag', num_heads: 'config' } });
});

test('a declared dtype `auto` is not reported: the log, else null', () => {
  const tiny = tinyWorkload();
  const workload = { ...tiny, model: { ...tiny.model!, dtype: 'auto' } };
  const dtypesWith = (log: Parameters<typeof dtypesOfRun>[2]['log']) =>
    dtypesOfRun(rowsOf(), planOf(), { workload, log, estimate: null }).dtypes;
  expect(dtypesWith(null)).toEqual({ weights: null, activations: null, kv_cache: null });
  const dtype = { value: 'bfloat16', line: 'dtype=torch.bfloat16', line_number: 1 };
  const log = { ranks: [], dtype } as unknown as Parameters<typeof dtypesWith>[0];
  expect(dtypesWith(log)).toEqual({ weights: 'bfloat16', activations: 'bfloat16', kv_cache: 'bfloat16' });
});

test('points of GPUs without a sample have a reason', () => {
  const points = gpuPoints(rowsOf(), planOf(), [0]);
  expect(points.baseline.total_bytes).toBeNull();
  expect(points.missing).toEqual({
    baseline: 'no sample of its GPUs was taken',
    post_warmup: 'no sample of its GPUs was taken',
    peak: 'no sample was taken while the engine ran',
  });
});

import { afterAll, expect, test } from 'vitest';
import { modelFactsSchema } from '../../model/model-facts.js';
import { gpuWorkload } from '../../facts/bench/test-bench.js';
import { engineHostChange, launchBoundChange } from './launch-changes.js';
import { stageFacts } from './stage-facts.js';
import { closeAll, contextOf, stepRows } from './test-steps.js';

afterAll(closeAll);

/** Decode steps of vLLM: a graph of 300 nodes, and launches of single GEMMs around it. */
const steps = (graph: boolean, single = 10) => {
  const more = { class: 'gemm' };
  const rows = stepRows('decode', 4, () => [
    ...Array.from({ length: 300 }, () => ({ kernel: 5, more: graph ? { ...more, graph_node: 0 } : more })),
    ...Array.from({ length: single }, () => ({ kernel: 5, more })),
  ]);
  for (const stage of rows.stages) stage.raw_name = 'execute_context_0(0)_generation_4(4)';
  // All nodes share the call that launched the graph, at the start of the step.
  for (const [i, kernel] of rows.kernels.entries()) {
    if (kernel.graph_node !== 0) continue;
    const step = Math.floor(i / (300 + single));
    kernel.correlation = 1_000 + step;
    kernel.api_start_ns = rows.stages[step]!.start_ns ?? null;
  }
  return contextOf(rows);
};

test('does not count graph nodes as launches, and does not suggest graphs to an engine that uses them', async () => {
  const context = await steps(true);
  const [stage] = await stageFacts(context);
  expect(stage).toMatchObject({ kernels: 310, launches: 11, graph_launches: 1 });
  const { text } = await launchBoundChange(context, stage!);
  expect(text).toContain('vLLM replays the model as a CUDA graph already');
  expect(text).not.toContain('--enforce-eager');
});

test('suggests sizes to capture if the GEMMs of a step are outside of graphs', async () => {
  const context = await steps(true, 100);
  const [stage] = await stageFacts(context);
  expect((await launchBoundChange(context, stage!)).text).toContain(
    'vLLM replays CUDA graphs, but launches these kernels outside of them: make the captured sizes cover the batch',
  );
});

test('states that graphs are off only if it is recorded', async () => {
  const context = await steps(false);
  const [stage] = await stageFacts(context);
  expect(stage).toMatchObject({ launches: 310, graph_launches: 0 });
  expect((await launchBoundChange(context, stage!)).text).toContain('run it without --enforce-eager');
  expect((await launchBoundChange(context, stage!, { enforce_eager: 'true' })).text).toContain(
    'remove --enforce-eager',
  );
});

test.each([
  [null, '--async-scheduling (if it is not on, as in newer versions) does it', '--async-scheduling'],
  [false, '--async-scheduling does it', '--async-scheduling'],
  [true, 'asynchronous scheduling is on already', null],
])('asynchronous scheduling %s: suggests it only if it may be off', async (on, text, example) => {
  const context = await steps(true);
  await stageFacts(context);
  const model = gpuWorkload().model!;
  const facts = modelFactsSchema.parse({ async_scheduling: on });
  const workload = gpuWorkload({ model: { ...model, facts } });
  const change = await engineHostChange({ ...context, manifest: { ...context.manifest, workload } });
  expect(change).toMatchObject({ text: expect.stringContaining(text), example });
});

test.each([
  ['ncclDevKernel_AllReduce_Sum_f32_RING_LL', 'cudaStreamBeginCapture'],
  ['void at::native::vectorized_elementwise_kernel<4>', 'torch.compile'],
])('the change is in the terms of the program: kernel %s, %s', async (name, example) => {
  const context = await contextOf(stepRows('decode', 3, () => [{ kernel: 5, more: { name } }]));
  const [stage] = await stageFacts(context);
  const change = await launchBoundChange(context, stage!);
  expect(change.example).toContain(example);
  const other = example === 'torch.compile' ? 'cudaStreamBeginCapture' : 'torch';
  expect(`${change.text} ${change.details} ${change.example}`).not.toContain(other);
});

test('a training step needs no KV cache', async () => {
  const context = await contextOf(stepRows('training', 3, () => [{ kernel: 5 }]));
  const [stage] = await stageFacts(context);
  const change = await launchBoundChange(context, stage!);
  expect(change.text).not.toContain('KV cache');
  expect(change.example).toContain('fused=True');
});

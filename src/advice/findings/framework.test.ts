import { afterAll, expect, test } from 'vitest';
import type { Row } from '../../model/tables.js';
import { makeFindingTables } from './finding-tables.js';
import { programOf } from './framework.js';
import { closeAll, contextOf, stepRows } from './test-steps.js';

afterAll(closeAll);

const allReduce = 'void tensorrt_llm::kernels::ar_fusion::allreduce_fusion_kernel_oneshot_lamport<x>(x)';
const rope = 'void vllm::rotary_embedding_kernel<c10::BFloat16, true>(x)';
const op = (name: string): Row<'ops'> => ({
  op_id: 1,
  stage_id: 0,
  name,
  start_ns: 0,
  dur_ns: 10,
  op_type: 'cpu_op',
});

test.each([
  // vLLM's range decides, although FlashInfer's kernels are in the namespace of TensorRT-LLM.
  ['vllm', 'execute_context_0(0)_generation_4(4)', [], [allReduce]],
  ['sglang', 'step[DECODE bs=32]', [], [rope, allReduce]],
  ['vllm', 'decode', ['_C_cache_ops::reshape_and_cache_flash'], [allReduce]],
  ['tensorrt_llm', 'decode', ['trtllm::fp8_block_scaling_gemm'], [rope]],
  ['vllm', 'decode', [], [rope, allReduce]],
  ['tensorrt_llm', 'decode', [], [allReduce]],
  [null, 'decode', ['aten::mm'], ['nvjet_sm90_hsh_64x8_64x16_1x1_v_bz_TNN']],
])('%s: range %s, operators %j, kernels %j', async (framework, range, operators, kernels) => {
  const rows = stepRows('decode', 1, () =>
    kernels.map((name) => ({ kernel: 10, more: { name, short_name: name } })),
  );
  rows.stages[0]!.raw_name = range;
  const context = await contextOf({ ...rows, ops: operators.map(op) });
  await makeFindingTables(context.scope!);
  expect((await programOf(context)).framework).toBe(framework);
});

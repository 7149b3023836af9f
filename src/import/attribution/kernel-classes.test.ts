import { expect, test } from 'vitest';
import { capture, kernel, launch, op } from './test-capture.js';
import type { Imported } from './test-import.js';

test('a kernel with an unknown name gets the class of the operator that launched it', async () => {
  const { database } = await capture({
    trace_ops: [
      op(1, 'nn.Module: LlamaAttention_0', 0, 60_000),
      op(2, 'aten::linear', 1_000, 9_000),
      op(3, 'aten::mm', 2_000, 7_000),
      op(4, 'mylib::fused_step', 11_000, 5_000),
      op(5, 'aten::_softmax', 10_500, 9_000),
      op(6, 'aten::mm', 30_000, 5_000),
    ],
    trace_api: [
      launch(3_000, 500, 1),
      launch(12_000, 500, 2),
      launch(25_000, 500, 3),
      launch(31_000, 500, 4),
      launch(32_000, 500, 5),
    ],
    trace_kernels: [
      kernel(4_000, 1_000, 1, { name: '_fwd_kernel_abc' }), // aten::mm
      kernel(13_000, 1_000, 2, { name: '_fwd_kernel_abc' }), // a custom operator inside aten::_softmax
      kernel(26_000, 1_000, 3, { name: '_fwd_kernel_abc' }), // a module is not an operator
      kernel(33_000, 1_000, 4, { name: '_fwd_kernel_abc', op_id: 1 }), // the capture records another operator
      kernel(35_000, 1_000, 5, { name: 'void flash_fwd_kernel<x>' }), // the kernel's name determines the class
      kernel(37_000, 1_000, 99, { name: '_fwd_kernel_abc', op_id: 4 }), // without a call
    ],
  });
  expect(await readClasses(database)).toEqual([
    'gemm',
    'attention',
    'other',
    'other',
    'attention',
    'attention',
  ]);
  await database.close();
});

async function readClasses(database: Imported['database']): Promise<string[]> {
  const rows = await database.query<{ class: string }>('SELECT class FROM kernels ORDER BY start_ns');
  return rows.map((row) => row.class);
}

test('kernels of a CUDA graph do not get the class of the operator that launched the graph', async () => {
  const name = '_fwd_kernel_abc';
  const { database } = await capture({
    trace_ops: [op(1, 'aten::mm', 0, 50_000)],
    trace_api: [
      launch(1_000, 500, 1),
      { ...launch(2_000, 500, 2), name: 'cudaGraphLaunch_v10000' },
      launch(3_000, 500, 3),
    ],
    trace_kernels: [
      kernel(4_000, 1_000, 1, { name }),
      // Profilers that do not number a graph's nodes, with and without the operator.
      kernel(6_000, 1_000, 2, { name }),
      kernel(8_000, 1_000, 2, { name, op_id: 1 }),
      kernel(10_000, 1_000, 3, { name, graph_node: 9 }),
      kernel(12_000, 1_000, 3, { name, graph_node: 9, op_id: 1 }),
      kernel(14_000, 1_000, 2, { name, opaque_graph: 1 }),
    ],
  });
  expect(await readClasses(database)).toEqual(['gemm', 'other', 'other', 'other', 'other', 'graph']);
  await database.close();
});

test('a kernel launched by a communication operator counts as communication on the device', async () => {
  const { database } = await capture({
    trace_ops: [op(1, 'nccl:all_reduce', 0, 2_000), op(2, 'c10d::allreduce_', 3_000, 2_000)],
    trace_api: [launch(500, 500, 1), launch(3_500, 500, 2), launch(6_000, 500, 3)],
    trace_kernels: [
      kernel(10_000, 4_000, 1, { name: '_own_a' }), // an annotation: it has no namespace
      kernel(20_000, 4_000, 2, { name: '_own_a', stream: 2 }),
      kernel(21_000, 1_000, 3, { name: '_own_b' }), // compute counts first
    ],
  });
  expect(await database.query('SELECT class, exclusive_ns FROM kernels ORDER BY start_ns')).toEqual([
    { class: 'other', exclusive_ns: 4_000 },
    { class: 'communication', exclusive_ns: 3_000 },
    { class: 'other', exclusive_ns: 1_000 },
  ]);
  await database.close();
});

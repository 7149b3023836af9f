// Writes a synthetic trace shaped like torch.profiler's of an LLM: decode steps of nested operators, runtime calls, kernels,
// flows and annotations. usage: node generate.mjs MEGABYTES OUT.json
import { createWriteStream } from 'node:fs';
import { once } from 'node:events';

const [megabytes, path] = [Number(process.argv[2]), process.argv[3]];
const out = createWriteStream(path, { highWaterMark: 8 << 20 });
let written = 0;
let pending = [];
let pendingBytes = 0;
async function put(text) {
  pending.push(text);
  pendingBytes += text.length;
  if (pendingBytes < 4 << 20) return;
  const block = pending.join('');
  written += block.length;
  pending = [];
  pendingBytes = 0;
  if (!out.write(block)) await once(out, 'drain');
}

const kernels = [
  'void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::Half>, std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<c10::Half>, std::array<char*, 3ul>)',
  'nvjet_hsh_128x8_64x12_2x1_v_bz_TNT',
  'void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::Half, float, true>(int, float, c10::Half const*, c10::Half const*, c10::Half const*, float*, float*, c10::Half*)',
  'void pytorch_flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<64, 64, 256, 4, false, false, cutlass::half_t, Flash_kernel_traits<64, 64, 256, 4, cutlass::half_t> >, false, false, false, false, true, true, false, false>(pytorch_flash::Flash_fwd_params)',
];
const ops = [
  'aten::linear',
  'aten::matmul',
  'aten::mm',
  'aten::add',
  'aten::mul',
  'aten::to',
  'aten::_to_copy',
  'aten::copy_',
];
await put(`{
  "schemaVersion": 1,
  "deviceProperties": [{"id": 0, "name": "NVIDIA H200", "totalGlobalMem": 150109880320, "computeMajor": 9, "computeMinor": 0, "numSms": 132}],
  "cuda_runtime_version": 13000, "displayTimeUnit": "ms", "baseTimeNanoseconds": 1790857026000000000,
  "traceEvents": [
`);
let ns = 4379921104302519n;
let id = 1;
let correlation = 1;
const us = (value) => `${value / 1000n}.${String(value % 1000n).padStart(3, '0')}`;
let comma = '  ';
for (let step = 0; written < megabytes * 1e6; step++) {
  const length = 400n * 30000n;
  await put(`${comma}{
    "ph": "X", "cat": "user_annotation", "name": "inferscope:decode:0:${step}", "pid": 869, "tid": 869,
    "ts": ${us(ns)}, "dur": ${us(length)},
    "args": {
      "External id": ${id++},"Record function id": 0, "Ev Idx": ${id}
    }
  }`);
  comma = ',\n  ';
  for (let launch = 0; launch < 400; launch++) {
    const at = ns + BigInt(launch) * 30000n;
    for (let depth = 0; depth < 3; depth++) {
      await put(`,\n  {
    "ph": "X", "cat": "cpu_op", "name": "${ops[(launch + depth) % ops.length]}", "pid": 869, "tid": 869,
    "ts": ${us(at + BigInt(depth) * 700n)}, "dur": ${us(25000n - BigInt(depth) * 3000n)},
    "args": {
      "External id": ${id++},"Record function id": 0, "Concrete Inputs": ["", "", ""], "Input type": ["c10::Half", "c10::Half", ""], "Input Strides": [[${2048 + (launch % 7)}, 1], [2048, 1], []], "Input Dims": [[8, ${1 + (launch % 7)}, 2048], [2048, 2048], []], "Ev Idx": ${id}
    }
  }`);
    }
    const cudaAt = at + 5000n;
    const kernelAt = at + 12000n;
    correlation++;
    await put(`,\n  {
    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 869, "tid": 869,
    "ts": ${us(cudaAt)}, "dur": 4.303,
    "args": {
      "External id": ${id - 1}, "cbid": 211, "correlation": ${correlation}
    }
  },
  {
    "ph": "s", "id": ${correlation}, "pid": 869, "tid": 869, "ts": ${us(cudaAt)},
    "cat": "ac2g", "name": "ac2g"
  },
  {
    "ph": "X", "cat": "kernel", "name": "${kernels[launch % kernels.length]}", "pid": 0, "tid": 7,
    "ts": ${us(kernelAt)}, "dur": ${us(4000n + BigInt((launch * 37) % 9000))},
    "args": {
      "External id": ${id - 1}, "queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": ${correlation}, "registers per thread": 32, "shared memory": 0, "blocks per SM": 0.484848, "warps per SM": 0.969697, "grid": [${64 + (launch % 5)}, 1, 1], "block": [128, 1, 1], "est. achieved occupancy %": 2
    }
  },
  {
    "ph": "f", "id": ${correlation}, "pid": 0, "tid": 7, "ts": ${us(kernelAt)},
    "cat": "ac2g", "name": "ac2g", "bp": "e"
  }`);
  }
  ns += length + 50000n;
}
await put('\n  ],\n  "traceName": "synthetic.json"\n}\n');
out.end(pending.join(''));
await once(out, 'finish');
console.error(`${path}: ${correlation - 1} kernels, ${id - 1} operators and annotations`);

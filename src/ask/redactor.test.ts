import { describe, expect, test } from 'vitest';
import { redactor, type Surroundings } from './redactor.js';
import type { AllowedData } from './allowable.js';

const surroundings: Surroundings = {
  hosts: ['node17', 'node17.cluster.example'],
  users: ['alice'],
  operatorRoots: new Set(['layers.3', 'model']),
  values: ['eu-west-1/bucket-42'],
  secrets: ['hunter2hunter2'],
};
const clean = (text: string, ...allowed: AllowedData[]) =>
  redactor(surroundings, new Set(allowed)).text(text);

describe('redacted texts', () => {
  test.each([
    ['/home/alice/run/decode.py line 7', '[path]/decode.py line 7'],
    ['opened /mnt/nfs/llama, then "/var/lib/x"', 'opened [path], then "[path]"'],
    ['--out=/srv/results/a.json', '--out=[path]'],
    ['~/models/llama', '[path]'],
    [String.raw`C:\Users\alice\x.txt`, '[path]'],
    ['file:///etc/passwd', '[path]'],
    ['/acme/llm/weights', '[path]'],
    ['on node17, node17.cluster.example', 'on [host], [host]'],
    ['http://10.1.2.3:8000/v1', 'http://[host]:8000/v1'],
    ['from 192.168.0.12 and fe80::1ff:fe23:4567:890a', 'from [address] and [address]'],
    ['alice@corp.example.com, Alice', '[user], [user]'],
    ['CUDA_HOME=/usr/x BUCKET=eu-west-1/bucket-42', 'CUDA_HOME=[value] BUCKET=[value]'],
    ['in eu-west-1/bucket-42', 'in [value]'],
    ['hunter2hunter2 sk-abcdefghijklmnop1234', '*** ***'],
  ])('%s', (text, expected) => {
    expect(clean(text)).toBe(expected);
  });
});

test.each([
  '/layers.3/attn/qkv_proj/MatMul',
  '/model/layers.0/input_layernorm/LayerNorm',
  'void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::Half>>(int)',
  'sm90_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas',
  '1200 tokens/s, 3.2 TB/s, 12:30:45, 64x64, a/b, and/or, 1 / 2',
  'cudaLaunchKernel, cute::array<int, 8>, std::pair<bool, int>::first',
  'torch 2.11.0, driver 580.65.06, 00000000:1B:00.0',
  'decode:iteration=3',
])('names and numbers are not redacted: %s', (text) => {
  expect(clean(text)).toBe(text);
});

test('each kind can be allowed separately, but never secrets', () => {
  const text = '/home/bob/x.txt on node17 MODE=fast hunter2hunter2';
  expect(clean(text, 'paths')).toBe('/home/bob/x.txt on [host] MODE=[value] ***');
  expect(clean(text, 'hosts')).toBe('[path] on node17 MODE=[value] ***');
  expect(clean(text, 'env')).toBe('[path] on [host] MODE=fast ***');
});

test('four numbers are a version, not an address, if the key contains version', () => {
  const { json } = redactor(surroundings, new Set());
  expect(json({ cublas_version: '13.0.0.19', address: '13.0.0.19' })).toEqual({
    cublas_version: '13.0.0.19',
    address: '[address]',
  });
});

import { expect, it } from 'vitest';
import { factWords } from './environment.js';

it.each([
  [{ id: 'l3_bytes', value: '33554432' }, ['L3', '32.0 MiB']],
  [{ id: 'memory_total_bytes', value: '25276514304' }, ['memory total', '23.5 GiB']],
  [{ id: 'gpu_memory_bandwidth_bytes_per_s', value: '4814304000000' }, ['GPU memory bandwidth', '4.81 TB/s']],
  [{ id: 'gpu_clock_hz', value: '1980000000' }, ['GPU clock', '1 980 MHz']],
  [{ id: 'gpu_sm_count', value: '132' }, ['GPU SM count', '132']],
  [{ id: 'cpu_avx512', value: 'false' }, ['CPU AVX512', 'no']],
  [{ id: 'node', value: '20.20.2' }, ['node', '20.20.2']],
  [{ id: 'os', value: 'linux' }, ['OS', 'linux']],
])('a fact of the manifest in words: $id', (fact, words) => {
  expect(factWords(fact).map((text) => text.replaceAll('\u00a0', ' '))).toEqual(words);
});

import { expect, it } from 'vitest';
import { factWords } from './environment.js';

it.each([
  [{ label: 'l3 bytes', value: '33554432' }, ['L3', '32.0 MiB']],
  [{ label: 'memory total bytes', value: '25276514304' }, ['memory total', '23.5 GiB']],
  [
    { label: 'gpu memory bandwidth bytes per s', value: '4814304000000' },
    ['GPU memory bandwidth', '4.81 TB/s'],
  ],
  [{ label: 'gpu clock hz', value: '1980000000' }, ['GPU clock', '1 980 MHz']],
  [{ label: 'gpu sm count', value: '132' }, ['GPU SM count', '132']],
  [{ label: 'cpu avx512', value: 'false' }, ['CPU AVX512', 'no']],
  [{ label: 'node', value: '20.20.2' }, ['node', '20.20.2']],
  [{ label: 'os', value: 'linux' }, ['OS', 'linux']],
])('a fact of the manifest in words: $label', (fact, words) => {
  expect(factWords(fact).map((text) => text.replaceAll('\u00a0', ' '))).toEqual(words);
});

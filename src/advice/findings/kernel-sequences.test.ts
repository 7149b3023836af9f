import { describe, expect, test } from 'vitest';
import { conversionsOfWeights } from './conversions-of-weights.js';
import { lowRankGemms } from './low-rank-gemms.js';
import { chainsOf } from './pointwise-chains.js';
import { tablesOfPositions } from './position-tables.js';
import type { SequenceKernel } from './step-sequence.js';

type NamedKernel = [name: string, us: number];

const classOf = (name: string): [string, SequenceKernel['role']] => {
  if (/gemm|splitK/.test(name)) return ['gemm', null];
  if (/cast/.test(name)) return ['copy', 'cast'];
  if (/cat/.test(name)) return ['copy', 'cat'];
  if (/fill|arange/.test(name)) return ['copy', 'constant'];
  if (/softmax/.test(name)) return ['attention', null];
  if (/norm|attention/.test(name)) return [name, null];
  return ['elementwise', null];
};

const sequence = (...kernels: NamedKernel[]): SequenceKernel[] =>
  kernels.map(([name, us], index) => {
    const [opClass, role] = classOf(name);
    const dur_ns = us * 1000;
    return {
      name,
      class: opClass,
      role,
      start_ns: index,
      dur_ns,
      stream: 7,
      op_id: null,
      blocks: 1,
      threads: 128,
    };
  });

const namesOf = (lists: readonly SequenceKernel[][]) => lists.map((list) => list.map(({ name }) => name));

describe('tables of positions', () => {
  const table: NamedKernel[] = [
    ['arange', 2],
    ['pow', 2],
    ['arange', 2],
    ['mul', 9],
    ['cat', 9],
    ['cos_kernel', 9],
    ['sin_kernel', 9],
  ];

  test('finds the kernels from arange to sines, in every layer', () => {
    const layer: NamedKernel[] = [['gemm', 7], ['add', 1], ...table, ['mul', 3], ['attention', 20]];
    const lists = tablesOfPositions(sequence(...layer, ...layer));
    expect(namesOf(lists)).toEqual([table.map(([name]) => name), table.map(([name]) => name)]);
  });

  test('does not report positions that depend on the batch', () => {
    // Hugging Face multiplies the frequencies by the positions of each sequence.
    expect(
      tablesOfPositions(sequence(['arange', 2], ['gemm', 3], ['cos_kernel', 2], ['sin_kernel', 2])),
    ).toEqual([]);
    expect(tablesOfPositions(sequence(['cos_kernel', 2], ['arange', 2]))).toEqual([]);
  });
});

describe('low-rank GEMMs', () => {
  const adapted: NamedKernel[] = [
    ['gemm', 7],
    ['cast', 3],
    ['gemm A', 5],
    ['splitKreduce_kernel', 2],
    ['gemm B', 3],
    ['mul', 1],
    ['cast', 1],
    ['add', 1],
  ];

  test('finds two GEMMs, a scaling and an addition after every GEMM', () => {
    const lists = lowRankGemms(sequence(['norm', 4], ...adapted, ['attention', 50], ...adapted, ['add', 2]));
    expect(namesOf(lists)).toEqual([
      adapted.slice(1).map(([name]) => name),
      adapted.slice(1).map(([name]) => name),
    ]);
  });

  test.each<[string, NamedKernel[]]>([
    [
      'projections and a rotation',
      [
        ['gemm q', 7],
        ['gemm k', 3],
        ['gemm v', 3],
        ['mul', 1],
        ['neg', 1],
        ['cat', 1],
        ['mul', 1],
        ['add', 1],
      ],
    ],
    [
      'a gated activation',
      [
        ['gemm gate', 7],
        ['gemm up', 7],
        ['silu', 1],
        ['mul', 1],
        ['gemm down', 7],
        ['add', 1],
      ],
    ],
    [
      'an output projection and the next norm',
      [
        ['attention', 7],
        ['gemm out', 7],
        ['add', 1],
        ['norm', 1],
        ['gemm', 7],
      ],
    ],
  ])('%s is not an adapter', (_what, layer) => {
    expect(lowRankGemms(sequence(...layer, ...layer, ...layer))).toEqual([]);
  });

  test('does not report a single low-rank GEMM, which may belong to the model', () => {
    expect(lowRankGemms(sequence(...adapted))).toEqual([]);
  });
});

describe('conversions of weights', () => {
  const dequantized: NamedKernel[] = [
    ['norm', 4],
    ['cast', 19],
    ['mul', 22],
    ['cast', 11],
    ['gemm', 7],
  ];

  test('finds kernels before a GEMM that take as long as the GEMM, but not the norm before them', () => {
    expect(namesOf(conversionsOfWeights(sequence(...dequantized), 'decode'))).toEqual([
      ['cast', 'mul', 'cast'],
    ]);
    expect(chainsOf(sequence(...dequantized), 'decode')).toEqual([]);
  });

  test('keys and values of unfused attention are not weights', () => {
    const attention: NamedKernel[] = [
      ['cast', 20],
      ['gemm', 10],
      ['mul', 2],
      ['softmax', 4],
      ['cast', 20],
      ['gemm', 10],
    ];
    expect(conversionsOfWeights(sequence(['norm', 4], ...attention), 'decode')).toEqual([]);
  });

  test('reports nothing in a prefill, where activations are as large as weights', () => {
    expect(conversionsOfWeights(sequence(...dequantized), 'prefill')).toEqual([]);
  });

  test('short conversions of activations and long kernels that convert nothing are not reported', () => {
    expect(
      conversionsOfWeights(sequence(['cast', 3], ['gemm', 7], ['cast', 5], ['gemm', 40]), 'decode'),
    ).toEqual([]);
    expect(conversionsOfWeights(sequence(['mul', 30], ['gemm', 7]), 'decode')).toEqual([]);
    expect(conversionsOfWeights(sequence(['fill', 300], ['gemm', 7]), 'decode')).toEqual([]);
  });
});

test('chains end where torch.compile left kernels apart that it fused', () => {
  const chain: NamedKernel[] = [
    ['mul', 3],
    ['add', 3],
    ['silu', 3],
  ];
  expect(chainsOf(sequence(['gemm', 9], ...chain), 'decode')).toMatchObject([{ saved_ns: 6000 }]);
  const fused = chain.map(([name, us], index): NamedKernel => [`triton_poi_fused_${name}_${index}`, us]);
  expect(chainsOf(sequence(['gemm', 9], ...fused), 'decode')).toEqual([]);
});

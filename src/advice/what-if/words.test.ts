import { describe, expect, test } from 'vitest';
import type { InferscopeError } from '../../model/errors.js';
import { changeWords, parseChanges } from './words.js';

describe('change words', () => {
  test('parses several changes, by commas or in sequence', () => {
    expect(parseChanges(['cudagraph,batch-size=32', 'dtype=fp8'])).toEqual([
      { text: 'cudagraph', word: 'cudagraph' },
      { text: 'batch-size=32', word: 'batch-size', batchSize: 32 },
      { text: 'dtype=fp8', word: 'dtype', dtype: 'float8' },
    ]);
    expect(parseChanges(['int4'])).toEqual([{ text: 'int4', word: 'dtype', dtype: 'int4' }]);
    expect(parseChanges(['gpu=H100'])).toMatchObject([
      {
        word: 'gpu',
        name: 'NVIDIA H100 80GB HBM3',
        chosen: expect.stringMatching(/^H100: NVIDIA H100 80GB HBM3 \(not .*NVIDIA H100 PCIe/),
      },
    ]);
    expect(parseChanges(['gpu=H200'])).toMatchObject([{ name: 'NVIDIA H200', chosen: null }]);
    expect(parseChanges(['gpu=nvidia h200'])).toMatchObject([{ name: 'NVIDIA H200' }]);
  });

  test.each([
    'graphs',
    'batch-size=0',
    'batch-size=many',
    'gpu=H999',
    'cudagraph=1',
    '',
    'int4,dtype=float8',
  ])('rejects %j and lists the known changes', (text) => {
    const thrown = (() => {
      try {
        parseChanges([text]);
      } catch (error) {
        return error as InferscopeError;
      }
      return null;
    })();
    expect(thrown).toMatchObject({ code: 'E_USAGE' });
    if (text === 'graphs') for (const { word } of changeWords) expect(thrown!.parts.why).toContain(word);
  });
});

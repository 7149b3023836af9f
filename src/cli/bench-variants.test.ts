import { expect, test } from 'vitest';
import { InferscopeError } from '../model/errors.js';
import { sizesParser } from './bench-options.js';
import { expandVariants } from './bench-variants.js';

const labels = (...texts: string[]) => expandVariants(texts).map(({ label }) => label);

function refusal(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    if (error instanceof InferscopeError) return `${error.code} ${error.parts.what}`;
  }
  return 'accepted';
}

test('without engine arguments there is one variant with the defaults', () => {
  expect(expandVariants([])).toEqual([{ execution_id: 'bench-1', label: 'defaults', engine_args: {} }]);
});

test('one variant per value, a grid over several keys; labels name what differs', () => {
  expect(expandVariants(['mode=eager,cudagraph', 'attn=sdpa'])).toEqual([
    { execution_id: 'bench-1', label: 'mode=eager', engine_args: { mode: 'eager', attn: 'sdpa' } },
    { execution_id: 'bench-2', label: 'mode=cudagraph', engine_args: { mode: 'cudagraph', attn: 'sdpa' } },
  ]);
  expect(labels('a=1,2', 'b=x,y')).toEqual(['a=1 b=x', 'a=1 b=y', 'a=2 b=x', 'a=2 b=y']);
  expect(labels('mode=compile')).toEqual(['mode=compile']);
  // The same value twice is one variant.
  expect(labels('a=1,1')).toEqual(['a=1']);
});

test('JSON and further equals signs are values', () => {
  const [first, ...more] = expandVariants(['extra_body={"top_k": 1, "x": [1,2]}', 'url=http://h/?a=b']);
  expect(first!.engine_args).toEqual({ extra_body: '{"top_k": 1, "x": [1,2]}', url: 'http://h/?a=b' });
  expect(more).toEqual([]);
});

test('an invalid engine argument is an error that contains it', () => {
  expect(refusal(() => expandVariants(['mode']))).toBe('E_USAGE --engine-arg mode cannot be read');
  expect(refusal(() => expandVariants(['=eager']))).toBe('E_USAGE --engine-arg =eager cannot be read');
  expect(refusal(() => expandVariants(['mode=eager,']))).toBe(
    'E_USAGE --engine-arg mode=eager, cannot be read',
  );
  expect(refusal(() => expandVariants(['a=1', 'a=2']))).toBe('E_USAGE --engine-arg a was given twice');
  const ten = '0,1,2,3,4,5,6,7,8,9';
  expect(refusal(() => expandVariants([`a=${ten}`, `b=${ten}`]))).toBe('E_USAGE the grid has 100 variants');
});

test('lists are 1,8,32 or 1 8 32 or repeated, each number once', () => {
  const parse = sizesParser('--batch-size');
  expect(parse('1,8,32')).toEqual([1, 8, 32]);
  expect(parse('1, 8 32')).toEqual([1, 8, 32]);
  expect(parse('8', [1, 8])).toEqual([1, 8]);
  for (const text of ['', '0', '1,,2', '1,', '2.5', 'x', '-1'])
    expect(
      refusal(() => parse(text)),
      text,
    ).toMatch(/^E_USAGE invalid --batch-size/);
  expect(refusal(() => sizesParser('--batch-size', { isSwept: false })('1,2'))).toMatch(
    /takes one number here, not 1, 2/,
  );
});

import { expect, test } from 'vitest';
import { parseJson } from './parse-json.js';

const nested = (levels: number): string => `{"a": ${'['.repeat(levels)}${']'.repeat(levels)}}`;

test('reads the same as JSON.parse, and rejects text nested too deeply for recursion', () => {
  expect(parseJson('{"a": [1, {"b": null}], "c": "[[["}')).toEqual({ a: [1, { b: null }], c: '[[[' });
  expect(parseJson('5')).toBe(5);
  expect(parseJson(nested(200))).toHaveProperty('a');
  expect(() => parseJson(nested(300))).toThrow(SyntaxError);
  expect(() => parseJson(nested(100_000))).toThrow(/256 levels/);
  expect(() => parseJson('{')).toThrow(SyntaxError);
});

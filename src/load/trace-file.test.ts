import { expect, test } from 'vitest';
import { InferscopeError } from '../model/errors.js';
import { parseTraceFile } from './trace-file.js';

test('an error quotes the start of a long cell, not all 10 MB', () => {
  const text = `TIMESTAMP,ContextTokens,GeneratedTokens\n${'A'.repeat(10_000_000)}`;
  const failure = (() => {
    try {
      return parseTraceFile(text, 'trace.csv');
    } catch (error) {
      return error;
    }
  })();
  expect(failure).toBeInstanceOf(InferscopeError);
  expect(JSON.stringify((failure as InferscopeError).parts).length).toBeLessThan(500);
});

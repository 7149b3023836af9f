import { expect, test } from 'vitest';
import { shellCommand, shellWords } from './shell.js';

test('splits words as a shell does', () => {
  expect(
    shellWords(`  --partition=cpu --comment='two words'  --constraint="a&b" a\\ b "say \\"hi\\""`),
  ).toEqual(['--partition=cpu', '--comment=two words', '--constraint=a&b', 'a b', 'say "hi"']);
  expect(shellWords('')).toEqual([]);
});

test('quoting and splitting words gives the same words', () => {
  const words = ['plain', 'two words', "it's", 'a"b', 'back\\slash', '$HOME'];
  expect(shellWords(shellCommand(words))).toEqual(words);
});

test.each(["--comment='open", '--comment="open', 'ends with \\'])(
  'a quote that does not end is an error: %s',
  (line) => {
    expect(shellWords(line)).toBeNull();
  },
);

import { Command } from 'commander';
import { expect, test } from 'vitest';
import { promptLengths } from './bench-serve-run.js';
import { defineServe } from './bench-serve.js';

const rampOf = (text: string): unknown => {
  const command = new Command('serve').exitOverride();
  defineServe(command);
  command.parseOptions(['--ramp-rate', text]);
  return command.opts()['rampRate'];
};

test('--ramp-rate takes two rates, in three notations', () => {
  expect(rampOf('1..20')).toEqual({ from: 1, to: 20 });
  expect(rampOf('0.5:2')).toEqual({ from: 0.5, to: 2 });
  expect(rampOf('20-0')).toEqual({ from: 20, to: 0 });
});

test.each(['1..', '..5', '1..2..3', '0..0', '1..x', '5'])('--ramp-rate %s is an error', (text) => {
  expect(() => rampOf(text)).toThrow(`--ramp-rate ${text} cannot be read`);
});

test('the requests of a trace have no common length', () => {
  const lengths = { inputLen: 128, outputLen: 64 };
  expect(promptLengths(lengths)).toEqual({ input_len: 128, output_len: 64 });
  expect(promptLengths({ ...lengths, trace: 'mooncake.jsonl' })).toEqual({
    input_len: null,
    output_len: null,
  });
});

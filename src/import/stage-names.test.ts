import { expect, test } from 'vitest';
import { InferscopeError } from '../model/errors.js';
import { stageNameRulesFrom } from './stage-name-config.js';
import { stageNameRules } from './stage-name-rules.js';
import { readStageNames, stageNameReader } from './stage-names.js';

const read = stageNameReader();

test('each rule matches its own sample', () => {
  for (const { pattern, sample } of stageNameRules) {
    const first = stageNameRules.find((rule) => new RegExp(`^(?:${rule.pattern.source})$`, 'i').test(sample));
    expect(first?.pattern, sample).toBe(pattern);
  }
});

test.each([
  ['inferscope:decode:0:17', { kind: 'decode', iteration: 0, step_index: 17, warmup: false }],
  [':inferscope:prefill:-1:0', { kind: 'prefill', iteration: -1, step_index: 0, warmup: true }],
  ['inferscope:warmup:0:0', { kind: 'warmup', warmup: true }],
  ['execute_context_1(888_788544)_generation_0(0)', { kind: 'prefill', batch_size: 1, new_tokens: 888 }],
  ['execute_context_0(0)_generation_32(32)', { kind: 'decode', batch_size: 32, new_tokens: 32 }],
  ['execute_2_context_1(512)_generation_3(3)', { kind: 'mixed', batch_size: 4, new_tokens: 515 }],
  // vLLM 0.26, gpu_worker.py: a chunk of 512 after 1024 cached, and three requests at 100, 200 and 300.
  [
    'execute_515_context_1(sq512sk1536sqsq262144sqsk786432)_generation_3(sq3sk600sqsq3sqsk600)',
    { kind: 'mixed', batch_size: 4, new_tokens: 515, context_tokens_sum: 2136 },
  ],
  [
    'execute_4_context_0(sq0sk0sqsq0sqsk0)_generation_4(sq4sk516sqsq4sqsk516)',
    { kind: 'decode', batch_size: 4, new_tokens: 4, context_tokens_sum: 516 },
  ],
  ['execute_context_0(0)_generation_4(4)', { kind: 'decode', new_tokens: 4, context_tokens_sum: null }],
  // TensorRT-LLM, py_executor.py: with and without the domain of its ranges, the step's number and the tokens of prompts.
  [
    'TensorRT-LLM:[Executor] _forward_step 12: 2 ctx reqs, 900 ctx tokens, 0 gen reqs',
    { kind: 'prefill', step_index: 12, batch_size: 2, new_tokens: 900 },
  ],
  [
    '[Executor] _forward_step 13: 0 ctx reqs, 0 ctx tokens, 32 gen reqs',
    { kind: 'decode', batch_size: 32, new_tokens: null },
  ],
  ['[Executor] _forward_step: 1 ctx reqs, 3 gen reqs', { kind: 'mixed', batch_size: 4, new_tokens: null }],
  ['step[EXTEND bs=15 toks=15360]', { kind: 'prefill', batch_size: 15, new_tokens: 15360 }],
  ['step[DECODE bs=32]', { kind: 'decode', batch_size: 32 }],
  ['prefill', { kind: 'prefill', iteration: null }],
  ['Decode step 3', { kind: 'decode', step_index: 3 }],
  ['warmup', { kind: 'warmup' }],
  ['load_model', { kind: 'load' }],
  ['sampling', { kind: 'sampling' }],
  ['ProfilerStep#3', { kind: 'other', step_index: 3 }],
  ['NCCL:ncclAllReduce', { kind: 'other' }],
  ['cuDNN:load', { kind: 'other' }],
  ['TensorRT:model.decode', { kind: 'other' }],
  ['LlamaDecoderLayer', { kind: 'other' }],
  ['decoder_layers.3', { kind: 'other' }],
  ['Kernel/scaled_dot_product', { kind: 'other' }],
])('reads %s', (name, expected) => {
  expect(read(name)).toMatchObject(expected);
});

test('the rules of a configuration file come first', () => {
  const configRules = stageNameRulesFrom(
    [{ pattern: 'prefill-chunk (?<new_tokens>\\d+)', kind: 'mixed' }],
    'f.yaml',
  );
  expect(stageNameReader(configRules)('prefill-chunk 64')).toMatchObject({ kind: 'mixed', new_tokens: 64 });
});

test.each([
  [{}, 'not a list'],
  [[3], 'no pattern'],
  [[{ pattern: 'a', kind: 'deocde' }], 'deocde'],
  [[{ pattern: '(', kind: 'decode' }], 'Unterminated'],
  [[{ pattern: 'a', kind: 'decode', patern: 'b' }], 'patern'],
])('reports an invalid entry with place and reason: %j', (value, why) => {
  try {
    stageNameRulesFrom(value, 'inferscope.yaml');
  } catch (error) {
    expect(error).toBeInstanceOf(InferscopeError);
    const { code, parts } = error as InferscopeError;
    expect(code).toBe('E_CONFIG_FILE');
    expect(parts.what).toContain('inferscope.yaml: stages');
    expect(parts.why).toContain(why);
    return;
  }
  expect.unreachable();
});

test('first calls recorded by hooks are warm-up if others of their kind are in the capture', () => {
  const texts = ['prefill:0:0:first', 'decode:0:0:first', 'decode:0:1:hook', 'prefill:0:0'];
  const read = readStageNames(
    texts.map((text, code) => ({ code, text: `inferscope:${text}` })),
    [],
  );
  expect(texts.map((_, code) => read(code).warmup)).toEqual([false, true, false, false]);
  expect(read(2)).toMatchObject({ kind: 'decode', iteration: 0, step_index: 1 });
});

test('first calls with sizes that no other call has are steps, except the first of their kind', () => {
  const texts = [
    'prefill:0:0:first:b2:t20:c20',
    'prefill:1:0:first:b2:t30:c30',
    'prefill:2:0:first:b2:t24:c24',
    'prefill:3:0:hook:b2:t30:c30',
  ];
  const read = readStageNames(
    texts.map((text, code) => ({ code, text: `inferscope:${text}` })),
    [],
  );
  expect(texts.map((_, code) => read(code).warmup)).toEqual([true, true, false, false]);
  const different = readStageNames(
    texts.slice(0, 3).map((text, code) => ({ code, text: `inferscope:${text}` })),
    [],
  );
  expect([0, 1, 2].map((code) => different(code).warmup)).toEqual([true, false, false]);
});

test('a hook names the sizes; calls before the first graph replay of their size are warm-up', () => {
  const texts = [
    'decode:0:0:first:b4:t4:c400',
    'decode:0:1:hook:b4:t4:c404',
    'decode:1:0:hook:b2:t2:c8',
    'decode:1:1:graph:b4:t4:c408',
    'decode:1:2:graph:b4:t4',
    'decode:2:0:hook:b4:t4:c412',
  ];
  const read = readStageNames(
    texts.map((text, code) => ({ code, text: `inferscope:${text}` })),
    [],
  );
  expect(texts.map((_, code) => read(code).warmup)).toEqual([true, true, false, false, false, false]);
  expect(read(3)).toMatchObject({ batch_size: 4, new_tokens: 4, context_tokens_sum: 408 });
  expect(read(4)).toMatchObject({ batch_size: 4, context_tokens_sum: null });
});

test('the first iteration at a context length is warm-up if a later one has the same length, while half of the steps remain', () => {
  const steps = (iterations: number, contexts: number[]) =>
    Array.from({ length: iterations }, (_, iteration) =>
      contexts.map((context, step) => `decode:${iteration}:${step}:hook:b4:t4:c${context}`),
    ).flat();
  const warmupFlags = (texts: string[]) => {
    const read = readStageNames(
      texts.map((text, code) => ({ code, text: `inferscope:${text}` })),
      [],
    );
    return texts.map((_, code) => read(code).warmup);
  };
  expect(warmupFlags(steps(3, [400, 404]))).toEqual([true, true, false, false, false, false]);
  expect(warmupFlags(steps(2, [400, 404]))).toEqual([true, true, false, false]);
  expect(warmupFlags(steps(1, [400, 404]))).toEqual([false, false]);
  // A growing chat: the first iterations would be more than half of the steps.
  const growing = [...steps(1, [400, 404, 408, 412]), 'decode:1:0:hook:b4:t4:c412'];
  expect(warmupFlags(growing)).toEqual([false, false, false, true, false]);
});

import { expect, test } from 'vitest';
import { checkForCpu, parseTransformersArgs } from './engine-args.js';

test('defaults: eager, sdpa, synchronized with the host in each step', () => {
  expect(parseTransformersArgs({})).toEqual({
    mode: 'eager',
    attn: 'sdpa',
    sync: 'step',
    tf32: false,
    threads: null,
    tensorParallelSize: 1,
  });
});

test('an engine argument overrides --threads', () => {
  expect(parseTransformersArgs({}, 4).threads).toBe(4);
  expect(parseTransformersArgs({ threads: '2' }, 4).threads).toBe(2);
});

test.each([
  [{ mod: 'compile' }, 'mode=compile'],
  [{ atn: 'sdpa' }, 'Did you mean --engine-arg attn=sdpa?'],
  // Nothing similar.
  [{ attention: 'sdpa' }, 'Type for example: --engine-arg mode=compile'],
  [{ attn: 'xformers' }, 'Type for example: --engine-arg attn=sdpa'],
  [{ mode: 'cuda-graph' }, 'mode=cudagraph'],
  [{ attn: 'flash_attention' }, 'attn=flash_attention_2'],
  [{ threads: '0' }, 'threads=4'],
  [{ tf32: 'tru' }, 'tf32=true'],
  [{ tensor_parallel_size: '0' }, 'tensor_parallel_size=2'],
  [{ mode: 'cudagraph', tensor_parallel_size: '2' }, 'mode=eager'],
  [{ mode: 'compile', attn: 'flash_attention_2' }, 'attn=sdpa'],
  [{ quantization: 'int8' }, '--engine vllm'],
])('%j is rejected, and the fix names %s', (args, near) => {
  expect(() => parseTransformersArgs(args as Record<string, string>)).toThrow(
    expect.objectContaining({
      code: 'E_USAGE',
      parts: expect.objectContaining({ fix: expect.stringContaining(near) as string }) as unknown,
    }) as Error,
  );
});

test.each([{ mode: 'cudagraph' }, { sync: 'end' }, { attn: 'flash_attention_2' }])(
  '%j needs a GPU',
  (args) => {
    const parsed = parseTransformersArgs(args as Record<string, string>);
    expect(() => checkForCpu(parsed)).toThrow(expect.objectContaining({ code: 'E_USAGE' }) as Error);
  },
);

test('compile runs on the CPU', () => {
  expect(() => checkForCpu(parseTransformersArgs({ mode: 'compile' }))).not.toThrow();
});

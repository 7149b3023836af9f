import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { InferscopeError } from '../../model/errors.js';
import { rootCause, withRootCause } from './root-cause.js';

/** The error from inferscope_vllm.py when only the front end's message arrived. */
const front = (why: string) =>
  new InferscopeError('E_WORKLOAD_FAILED', {
    what: 'vLLM could not start with tiny',
    why,
    fix: 'Its log is kept with the session.',
  });
const core = 'RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}';

test('ignores warnings that contain an exception', () => {
  const warned =
    '(MainProcess pid=1) WARNING 11-21 15:00:25 [base.py:380] ValueError: Tokenizer not available when `skip_tokenizer_init=True`';
  expect(rootCause(warned)).toBeNull();
  expect(rootCause(`${warned}\n${core}`)).toBeNull();
});

test('reads a pydantic error from the line after its count', () => {
  const log = [
    'pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig',
    '  Value error, User-specified max_model_len (8192) is greater than the derived max_model_len (max_position_embeddings=2048). [type=value_error, input_value=ArgsKwargs((), {}), input_type=ArgsKwargs]',
  ].join('\n');
  expect(rootCause(log)).toEqual({
    name: 'ValidationError',
    text: 'User-specified max_model_len (8192) is greater than the derived max_model_len (max_position_embeddings=2048).',
  });
});

test('keeps the message of an error raised in the front end, and adds what to type', () => {
  const explained = withRootCause(
    front(
      'ValidationError: User-specified max_model_len (8192) is greater than the derived max_model_len (max_position_embeddings=2048).',
    ),
    core,
  ) as InferscopeError;
  expect(explained.code).toBe('E_LENGTHS');
  expect(explained.parts.what).toBe('vLLM could not start with tiny');
  expect(explained.parts.fix).toContain('--max-model-len');
});

test('finds the first of four exceptions of three processes in a recorded start without enough memory', () => {
  const log = readFileSync('test/fixtures/vllm-logs/v0.32.0-cpu-no-room.log', 'utf8');
  const explained = withRootCause(front(core), log) as InferscopeError;
  expect(explained.code).toBe('E_OUT_OF_MEMORY');
  expect(explained.parts.why).toMatch(
    /^ValueError: Available memory on node 0 \(21\.27\/23\.54 GiB\) on kv cache allocation is less/,
  );
  expect(explained.parts.fix).toContain('VLLM_CPU_KVCACHE_SPACE');
});

test('leaves other and unknown failures unchanged', () => {
  const usage = new InferscopeError('E_USAGE', { what: 'a', why: core, fix: 'c' });
  expect(withRootCause(usage, 'ValueError: x')).toBe(usage);
  const ownError = front('TypeError: something of its own');
  expect(withRootCause(ownError, core)).toBe(ownError);
  expect(withRootCause(null, core)).toBeNull();
});

test('finds a C++ error after a progress bar', () => {
  // vLLM 0.26 on an H200, cut to what bfloat16 needs, with --kv-cache-dtype fp8; progress bars as in the terminal.
  const log = `(EngineCore pid=1119) INFO 11-21 22:22:48 [kv_cache_utils.py:2177] GPU KV cache size: 5,130,400 tokens
(EngineCore pid=1119) \rCapturing CUDA graphs (FULL):   0%|          | 0/51 [00:00<?, ?it/s]CUDA error (/workspace/.deps/vllm-flash-attn-src/hopper/flash_fwd_launch_template.h:199): device kernel image is invalid
${core}`;
  const explained = withRootCause(front(core), log) as InferscopeError;
  expect(explained.parts.why).toBe('CUDA error: device kernel image is invalid');
  expect(explained.parts.fix).toContain('--kv-cache-dtype');
});

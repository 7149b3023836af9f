import { expect, test } from 'vitest';
import { planMemory } from '../capture/sweep/plan-memory.js';
import { placesOf } from './sweep-places.js';

const entry = { model_id: 'llama-2-7b', input_lengths: 512, output_lengths: 128, batch_sizes: 1 };
const none = { container: null, url: null, engine: null, engineArgs: [] };
const here = { mode: 'host' as const, ...none, device: null, weights: null, python: null };
const gpus = [24 * 2 ** 30];

/** Engine and device of one run, on a machine with default engine `engine`. */
async function engineOf(targets: object, engine: 'onnx' | 'vllm', more: object = {}) {
  const [run] = planMemory([{ ...entry, ...more }], { ...here, ...targets }).runs;
  const place = await placesOf('memory', gpus, async () => ({ engine, issues: [] }))(run!);
  return [place.engine, place.device];
}

test('a container has vLLM, whatever this machine has; a named engine takes precedence', async () => {
  const container = { mode: 'container' };
  expect(await engineOf({ ...container, container: 'c' }, 'onnx')).toEqual(['vllm', 'gpu']);
  expect(await engineOf(container, 'onnx', { container_name: 'c' })).toEqual(['vllm', 'gpu']);
  expect(await engineOf({ ...container, container: 'c', engine: 'transformers' }, 'onnx')).toEqual([
    'transformers',
    'gpu',
  ]);
});

test('without a visible GPU a container is not judged by host memory', async () => {
  const [run] = planMemory([entry], { ...here, mode: 'container', container: 'c' }).runs;
  const places = placesOf('memory', [], async () => ({ engine: 'onnx', issues: [] }));
  expect(await places(run!)).toEqual({ engine: 'vllm', device: 'gpu', capacities: [] });
  const [onCpu] = planMemory([entry], { ...here, mode: 'container', container: 'c', device: 'cpu' }).runs;
  expect((await places(onCpu!)).device).toBe('cpu');
});

test('this machine uses the default engine of `memory`; a server has none', async () => {
  expect(await engineOf({}, 'vllm')).toEqual(['vllm', 'gpu']);
  expect(await engineOf({}, 'onnx')).toEqual(['onnx', 'cpu']);
  expect(await engineOf({ engine: 'vllm', device: 'cpu' }, 'onnx')).toEqual(['vllm', 'cpu']);
  expect(await engineOf({ mode: 'url', url: 'http://h:8000/v1' }, 'vllm')).toEqual([null, 'gpu']);
});

test('without a GPU here the memory of vLLM and of a container is unknown, not that of this host', async () => {
  const place = async (targets: object) => {
    const [run] = planMemory([entry], { ...here, ...targets }).runs;
    return placesOf('memory', [], async () => ({ engine: 'onnx', issues: [] }))(run!);
  };
  const unseen = { device: 'gpu', capacities: [] };
  expect(await place({ mode: 'container', container: 'c' })).toEqual({ engine: 'vllm', ...unseen });
  expect(await place({ engine: 'vllm' })).toEqual({ engine: 'vllm', ...unseen });
  expect(await place({ engine: 'vllm', device: 'cpu' })).toMatchObject({ device: 'cpu' });
  expect(await place({ engine: 'transformers' })).toMatchObject({ device: 'cpu' });
});

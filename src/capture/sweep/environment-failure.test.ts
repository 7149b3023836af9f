import { expect, test } from 'vitest';
import { obstacleOf } from './environment-failure.js';

const run = (parameters: Record<string, string | number>, more: string[] = []) => ({
  arguments: ['memory', ...more],
  parameters,
});

/** Which of two other runs is blocked by a failure with this code of a run in a container. */
function blocked(code: string): boolean[] | null {
  const failure = { code, what: '', why: '', fix: '', infrastructure: false };
  const obstacle = obstacleOf({
    ...run({ batch_size: 1, container_name: 'a' }, ['--container', 'a']),
    failure,
  });
  return (
    obstacle &&
    [
      run({ batch_size: 8, container_name: 'a' }, ['--container', 'a']),
      run({ batch_size: 1, container_name: 'b' }, ['--container', 'b']),
      run({ batch_size: 1 }),
    ].map(obstacle.blocks)
  );
}

test('a missing engine prevents runs of a grid that differ in lengths, not those with another engine', () => {
  const failure = { code: 'E_ENGINE_MISSING', what: '', why: '', fix: '', infrastructure: false };
  const obstacle = obstacleOf({ ...run({ input_len: 8, output_len: 4, engine: 'vllm' }), failure })!;
  expect(obstacle.blocks(run({ input_len: 16, output_len: 8, engine: 'vllm' }))).toBe(true);
  expect(obstacle.blocks(run({ input_len: 8, output_len: 4, engine: 'onnx' }))).toBe(false);
});

test.each([
  ['E_DOCKER', [true, true, false]],
  ['E_HOME_UNWRITABLE', [true, true, true]],
  ['E_ENGINE_MISSING', [true, false, false]],
  ['E_OUT_OF_MEMORY', null],
  ['E_WORKLOAD_FAILED', null],
])('%s prevents other runs from starting: %j', (code, expected) => {
  expect(blocked(code)).toEqual(expected);
});

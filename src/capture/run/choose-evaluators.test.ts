import { expect, test } from 'vitest';
import { runsPython } from './choose-evaluators.js';

test.each([
  [['python', 'decode.py'], true],
  [['/opt/venv/bin/python3.12', '-m', 'x'], true],
  [['uv', 'run', 'decode.py'], true],
  [['vllm', 'serve', 'm'], true],
  [['./server', '--engine', 'transformers'], false],
  // An inferscope command counts as Python if its engine does.
  [['inferscope', 'bench', 'latency', '--engine', 'transformers'], true],
  [['npx', 'inferscope', 'memory', '--engine=vllm', '--model', 'm'], true],
  [['node', '/x/dist/cli.js', 'kernels', 'gemm', '--engine', 'torch'], true],
  [['inferscope', 'bench', 'latency', '--engine', 'onnx'], false],
  [['inferscope', 'bench', 'latency', '--python', 'python3'], false],
  [['inferscope', 'profile', '--model', 'x.py'], false],
])('%j runs Python: %j', (command, expected) => {
  expect(runsPython(command)).toBe(expected);
});

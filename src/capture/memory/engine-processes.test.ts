import { expect, test } from 'vitest';
import { withoutEngine } from './engine-processes.js';

test("a server's worker does not count as another process on the GPU", () => {
  // vllm serve 0.26.0 on an H200: nvidia-smi lists only pid 2334; 2239 is the API server, its parent.
  const worker = { gpu: 0, pid: 2334, name: 'VLLM::EngineCor', used_bytes: 71_944 * 2 ** 20 };
  const otherProcess = { gpu: 0, pid: 540, name: 'python3', used_bytes: 4_868 * 2 ** 20 };
  expect(withoutEngine([worker, otherProcess], [2239, 2334])).toEqual([otherProcess]);
  expect(withoutEngine([worker, otherProcess], [])).toEqual([worker, otherProcess]);
});

import { expect, test } from 'vitest';
import { engineProcesses, unseenKernels } from './unseen-kernels.js';

// vLLM 0.26.0 on an H200, 2026-11-21, 18:52 UTC, under nsys 2025.3: NVTX ranges of its forked engine core, no CUDA.
const log = `INFO 11-21 18:52:09 [model.py:623] Resolved architecture: LlamaForCausalLM
(EngineCore pid=2524) INFO 11-21 18:52:09 [core.py:116] Initializing a V1 LLM engine (v0.26.0) with config: …
(EngineCore pid=2524) INFO 11-21 18:52:10 [gpu_worker.py:378] Using V2 Model Runner
(Worker_TP0 pid=2530) INFO 11-21 18:52:10 [gpu_worker.py:378] Using V2 Model Runner
{"turn": 0, "tokens": 128, "seconds": 0.1623}
`;
const usedRows = (device: number, ...bytes: number[]) =>
  bytes.map((usedBytes) => ({ kind: 'used', device, bytes: usedBytes }));
const recorded = {
  execution_id: 'nsys',
  memory: [
    { kind: 'rss', device: null, bytes: 3_201_183_744 },
    ...usedRows(0, 0, 700_000_000, 45_060_325_376, 0),
    ...usedRows(1, 9e9, 9e9),
  ],
  telemetry: [
    { scope: 'gpu0', metric: 'utilization_percent', value: 36 },
    { scope: 'gpu0', metric: 'utilization_percent', value: 0 },
    { scope: 'gpu1', metric: 'utilization_percent', value: 100 },
  ],
  engineProcesses: engineProcesses(log),
};

test("reads the computing processes from vLLM's log", () => {
  expect(engineProcesses(log)).toEqual(['EngineCore pid=2524', 'Worker_TP0 pid=2530']);
  expect(engineProcesses('(APIServer pid=7) INFO\nsaid (EngineCore pid=9) INFO')).toEqual([]);
});

test('reports the process that computed on a GPU while nsys recorded no kernel, and two ways to fix it', () => {
  const error = unseenKernels(recorded)!;
  expect(error.code).toBe('E_NO_KERNELS');
  expect(error.parts.what).toBe('nsys recorded no kernels, but the program used GPU 0');
  expect(error.parts.why).toContain('GPU 0 rose by 42.0 GiB and it was busy up to 36 %');
  expect(error.parts.why).toContain('EngineCore pid=2524, Worker_TP0 pid=2530');
  expect(error.parts.fix).toContain('VLLM_WORKER_MULTIPROC_METHOD=spawn');
  expect(error.parts.fix).toContain('VLLM_ENABLE_V1_MULTIPROCESSING=0');
});

test('for other programs names forks, containers and servers', () => {
  const error = unseenKernels({ ...recorded, engineProcesses: [] })!;
  expect(`${error.parts.why} ${error.parts.fix}`).not.toMatch(/vllm/i);
  expect(error.parts.why).toContain('forked');
});

test('an unused GPU is not a failure: other programs allocate a little, and some machines have none', () => {
  expect(unseenKernels({ ...recorded, memory: usedRows(0, 1e9, 1.2e9, 0.9e9) })).toBeNull();
  expect(unseenKernels({ ...recorded, memory: [] })).toBeNull();
});

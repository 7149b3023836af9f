import { expect, test } from 'vitest';
import { infrastructureFault } from './infrastructure-faults.js';

// As printed by drivers, PyTorch, NCCL, vLLM, Docker and the hub.
test.each([
  [
    'E_TOOL_FAILED',
    'Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?',
    'docker_gone',
  ],
  [
    null,
    'RuntimeError: CUDA driver initialization failed, you might not have a CUDA gpu.',
    'gpu_initialization',
  ],
  [null, 'CUDA error: CUDA-capable device(s) is/are busy or unavailable', 'gpu_initialization'],
  [null, 'torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered', 'gpu_lost'],
  [
    'E_WORKLOAD_FAILED',
    'ValueError: Free memory on device cuda:0 (27.28/31.86 GiB) on startup is less than desired GPU memory utilization (0.97, 30.9 GiB).',
    'gpu_memory_held',
  ],
  [
    null,
    'OSError: [Errno 98] error while attempting to bind on address: address already in use',
    'port_taken',
  ],
  [
    null,
    'torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:3690, unhandled system error, NCCL version 2.29.2\nncclSystemError: System call (e.g. socket, malloc) or external library call failed',
    'collective_timeout',
  ],
  [
    null,
    '[rank1]:[E1121 ProcessGroupNCCL.cpp:695] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3)',
    'collective_timeout',
  ],
  [
    null,
    'requests.exceptions.HTTPError: 503 Server Error: Service Unavailable for url: https://x/',
    'network',
  ],
  ['E_SERVER_UNREACHABLE', 'nobody answers at http://127.0.0.1:8000', 'server_unreachable'],
  ['E_DISK_FULL', 'the disk is full', 'disk_full'],
] as const)('%s, %s: again, as %s', (code, text, id) => {
  expect(infrastructureFault(code, text)?.id).toBe(id);
});

test.each([
  ['E_OUT_OF_MEMORY', 'it did not fit'],
  ['E_MODEL_ACCESS', '401 Client Error; Connection aborted'],
  // One rank ran out of memory; the others lost the connection to it.
  [
    null,
    'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\nNCCL error: remote process exited',
  ],
  [null, 'ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`'],
  [null, 'Failed to initialize NVML: Driver/library version mismatch; Connection reset by peer'],
  ['E_WORKLOAD_FAILED', "KeyError: 'rope_scaling'"],
  ['E_TIMEOUT', 'the run did not finish within 60 s (--timeout)'],
  [null, ''],
] as const)('%s, %s: not again', (code, text) => {
  expect(infrastructureFault(code, text)).toBeNull();
});

import { describe, expect, test } from 'vitest';
import { recognizeFailure, failurePatterns } from './failures.js';
import type { EndedRun } from './failure-pattern.js';
import { cpuFallbackIssue } from './empty-capture.js';
import { downloadIssue } from './first-download.js';

const ended = (change: Partial<EndedRun>): EndedRun => ({
  execution_id: 'clean',
  command: ['python3', 'decode.py'],
  exit_code: 1,
  signal: null,
  startError: null,
  timedOut: false,
  timeoutMs: null,
  output: '',
  tool: null,
  log: 'stderr.log',
  ...change,
});
const nsys = { name: 'nsys', version: '2025.3.1.0', path: '/x/nsys' };
const ncu = { name: 'ncu', version: '2025.3.1.0', path: '/x/ncu' };

/** Output of real programs: from our recordings or captures, or quoted from the issue named at the entry. */
const cases: [id: string, code: string, says: RegExp, change: Partial<EndedRun>][] = [
  [
    'command_missing',
    'E_WORKLOAD_FAILED',
    /python3 was not found/,
    { exit_code: null, startError: 'ENOENT' },
  ],
  ['command_forbidden', 'E_PERMISSION', /chmod \+x/, { exit_code: null, startError: 'EACCES' }],
  [
    // deepseek-ai/DeepGEMM#46
    'counters_forbidden',
    'E_NCU_PERMISSION',
    /NVreg_RestrictProfilingToAdminUsers=0/,
    {
      exit_code: 0,
      tool: ncu,
      output:
        '==PROF== Connected to process 35989 (/usr/bin/python3.10)\n==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters on the target device 0. For instructions on enabling permissions and to get more information see https://developer.nvidia.com/ERR_NVGPUCTRPERM',
    },
  ],
  ['disk_full', 'E_DISK_FULL', /df -h/, { output: 'OSError: [Errno 28] No space left on device' }],
  ['timeout', 'E_TIMEOUT', /within 90 s.*--timeout/s, { timedOut: true, timeoutMs: 90_000, exit_code: null }],
  [
    'timeout',
    'E_TIMEOUT',
    /ncu did not finish within 600 s.*--ncu-kernel/s,
    { timedOut: true, timeoutMs: 600_000, tool: ncu },
  ],
  [
    // pytorch/pytorch#16417, torch 2.2
    'out_of_memory',
    'E_OUT_OF_MEMORY',
    /asked for 22\.00 MiB more, the GPU has 23\.65 GiB, 11\.06 MiB of it was free/,
    {
      output:
        'torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 22.00 MiB. GPU 0 has a total capacity of 23.65 GiB of which 11.06 MiB is free. Including non-PyTorch memory, this process has 23.60 GiB memory in use.',
    },
  ],
  [
    // OPIXray-author/OPIXray#5, torch 1.8
    'out_of_memory',
    'E_OUT_OF_MEMORY',
    /asked for 264\.00 MiB more, the GPU has 2\.00 GiB/,
    {
      output:
        'RuntimeError: CUDA out of memory. Tried to allocate 264.00 MiB (GPU 0; 2.00 GiB total capacity; 788.51 MiB already allocated; 145.93 MiB free; 1.02 GiB reserved in total by PyTorch)',
    },
  ],
  [
    'out_of_memory',
    'E_OUT_OF_MEMORY',
    /HIP out of memory: it asked for 2\.00 GiB more.*amd-smi/s,
    { output: 'torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB.' },
  ],
  [
    // ToTheBeginning/PuLID#97
    'model_gated',
    'E_MODEL_ACCESS',
    /black-forest-labs\/FLUX\.1-dev is gated.*401.*HF_TOKEN/s,
    {
      output:
        'huggingface_hub.errors.GatedRepoError: 401 Client Error. (Request ID: Root=1-66f4b037)\n\nCannot access gated repo for url https://huggingface.co/black-forest-labs/FLUX.1-dev/resolve/main/ae.safetensors.\nAccess to model black-forest-labs/FLUX.1-dev is restricted. You must have access to it and be authenticated to access it. Please log in.',
    },
  ],
  [
    // huggingface/transformers#31367
    'model_gated',
    'E_MODEL_ACCESS',
    /Mixtral-8x7B-Instruct-v0\.1 is gated.*has no access \(403\)/s,
    {
      output:
        'OSError: You are trying to access a gated repo.\nMake sure to have access to it at https://huggingface.co/mistralai/Mixtral-8x7B-Instruct-v0.1.\n403 Client Error. (Request ID: Root=1-666818ee)',
    },
  ],
  [
    'model_missing',
    'E_MODEL_ACCESS',
    /org\/private-model was not found/,
    {
      output:
        'huggingface_hub.utils._errors.RepositoryNotFoundError: 401 Client Error. Repository Not Found for url: https://huggingface.co/api/models/org/private-model/revision/main. Please make sure you specified the correct `repo_id` and `repo_type`.',
    },
  ],
  [
    'hub_refused',
    'E_MODEL_ACCESS',
    /answered 404/,
    { output: 'requests.exceptions.HTTPError: 404 Client Error: Not Found for url: https://hub/x' },
  ],
  [
    'hub_unreachable',
    'E_MODEL_ACCESS',
    /--weights random/,
    {
      output:
        "OSError: We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find them in the cached files.",
    },
  ],
  [
    'container_missing',
    'E_WORKLOAD_FAILED',
    /docker ps -a/,
    { output: 'Error response from daemon: No such container: vllm' },
  ],
  [
    'container_stopped',
    'E_WORKLOAD_FAILED',
    /docker start 4f66ad9a0b2e/,
    { output: 'Error response from daemon: container 4f66ad9a0b2e is not running' },
  ],
  [
    'container_paused',
    'E_WORKLOAD_FAILED',
    /docker unpause vllm/,
    {
      output: 'Error response from daemon: Container vllm is paused, unpause the container before exec',
    },
  ],
  [
    'docker_silent',
    'E_TOOL_FAILED',
    /systemctl start docker/,
    {
      output:
        'Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?',
    },
  ],
  [
    // docker/cli#2025
    'container_lacks_program',
    'E_ENGINE_MISSING',
    /vllm is not installed in the container/,
    {
      exit_code: 126,
      output:
        'OCI runtime exec failed: exec failed: container_linux.go:344: starting container process caused "exec: \\"vllm\\": executable file not found in $PATH": unknown',
    },
  ],
  [
    'docker_forbidden',
    'E_PERMISSION',
    /usermod -aG docker/,
    {
      output:
        'permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock: Get "http://%2Fvar%2Frun%2Fdocker.sock/v1.24/containers/json"',
    },
  ],
  [
    'module_missing',
    'E_ENGINE_MISSING',
    /pip install transformers/,
    { output: "ModuleNotFoundError: No module named 'transformers.models'" },
  ],
  [
    'script_missing',
    'E_WORKLOAD_FAILED',
    /decode\.py/,
    { exit_code: 2, output: "python3: can't open file '/x/decode.py': [Errno 2] No such file or directory" },
  ],
  [
    'cuda_unavailable',
    'E_ENGINE_MISSING',
    /inferscope doctor/,
    {
      output:
        'RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and installed a driver from http://www.nvidia.com/Download/index.aspx',
    },
  ],
  [
    'invalid_json',
    'E_WORKLOAD_FAILED',
    /invalid JSON.*stderr\.log/s,
    { output: 'json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)' },
  ],
  [
    // nsys 2025.3.1 on our H200 machine without libdw: the program succeeded.
    'importer_missing',
    'E_TOOL_FAILED',
    /libdw/,
    {
      exit_code: 0,
      tool: nsys,
      output:
        "Importer error status: An unknown error occurred.\nUnable to retrieve the importer version: skipping importation of the QDSTRM file.\nGenerating '/tmp/nsys-report-650a.qdstrm'",
    },
  ],
  [
    'no_kernels_ncu',
    'E_NO_KERNELS',
    /--ncu-kernel/,
    { exit_code: 0, tool: ncu, output: '==WARNING== No kernels were profiled.' },
  ],
  [
    'no_kernels_ncu',
    'E_NO_KERNELS',
    /VLLM_WORKER_MULTIPROC_METHOD=spawn/,
    {
      exit_code: 0,
      tool: ncu,
      output: '(EngineCore pid=2524) INFO 11-21 18:52:10 …\n==WARNING== No kernels were profiled.',
    },
  ],
  // ncu 2025.3.1 with --nvtx-include 'inferscope:decode*/', which matches no name; vLLM 0.26
  [
    'no_kernels_ncu',
    'E_NO_KERNELS',
    /"regex:decode\/"/,
    {
      exit_code: 0,
      tool: ncu,
      output:
        '(EngineCore pid=969) INFO 11-30 …\n==WARNING== No kernels were profiled.\n==WARNING== Note that specified NVTX include expressions match only push/pop ranges.',
    },
  ],
  [
    'no_kernels_ncu',
    'E_NO_KERNELS',
    /--ncu-kernel/,
    {
      exit_code: 0,
      tool: ncu,
      output:
        "inferscope: vLLM's processes are spawned, not forked, because nsys and ncu record no kernels of forked ones\n(EngineCore pid=969) INFO …\n==WARNING== No kernels were profiled.",
    },
  ],
  // nsys stats 2025.3.1 on a report with whole CUDA graphs
  [
    'no_kernels_nsys',
    'E_NO_KERNELS',
    /CUDA graphs/,
    { exit_code: 0, tool: nsys, output: 'SKIPPED: nsys.sqlite does not contain CUDA kernel data.' },
  ],
  [
    'capture_range_never',
    'E_NO_KERNELS',
    /--capture-range/,
    { exit_code: 0, tool: nsys, output: 'No reports were generated' },
  ],
  [
    'permission_denied',
    'E_PERMISSION',
    /ls -l/,
    { output: "PermissionError: [Errno 13] Permission denied: '/dev/nvidia0'" },
  ],
  ['host_out_of_memory', 'E_OUT_OF_MEMORY', /main memory/, { output: 'Traceback …\nMemoryError\n' }],
  [
    'host_out_of_memory',
    'E_OUT_OF_MEMORY',
    /allocate 53687091200/,
    {
      output:
        "RuntimeError: [enforce fail at alloc_cpu.cpp:121] . DefaultCPUAllocator: can't allocate memory: you tried to allocate 53687091200 bytes.",
    },
  ],
  ['killed_for_memory', 'E_WORKLOAD_FAILED', /memory/, { exit_code: null, signal: 'SIGKILL' }],
];

describe('known failures', () => {
  test.each(cases)('%s → %s', (id, code, pattern, change) => {
    const facts = ended(change);
    const first = failurePatterns.find(
      ({ anyExit, matches }) => (anyExit || facts.exit_code !== 0) && matches(facts),
    );
    expect(first?.id).toBe(id);
    const failure = recognizeFailure(facts)!;
    expect(failure.code).toBe(code);
    const { what, why, fix } = failure.parts;
    expect([what, why, fix].join('\n')).toMatch(pattern);
    for (const part of [what, why, fix]) expect(part.length).toBeGreaterThan(10);
    expect([what, why, fix].join()).not.toMatch(/undefined|null/);
  });

  test('every pattern has an example here', () => {
    const seen = new Set(cases.map(([id]) => id));
    expect(failurePatterns.filter(({ id }) => !seen.has(id)).map(({ id }) => id)).toEqual([]);
  });

  test('a program that exited with 0 has not failed, whatever it prints', () => {
    expect(
      recognizeFailure(ended({ exit_code: 0, output: 'CUDA out of memory: retrying with batch 4' })),
    ).toBeNull();
    expect(
      recognizeFailure(ended({ exit_code: 0, output: '==WARNING== No kernels were profiled.' })),
    ).toBeNull();
  });

  test('an unknown failure quotes the last line and names the log', () => {
    const failure = recognizeFailure(
      ended({ exit_code: 3, output: 'a\nValueError: heads must divide hidden\n' }),
    )!;
    expect(failure.code).toBe('E_WORKLOAD_FAILED');
    expect(failure.parts).toMatchObject({
      what: 'python3 exited with code 3',
      why: 'Last output: ValueError: heads must divide hidden',
    });
    expect(failure.parts.fix).toContain('stderr.log');
  });
});

test('detects a fallback to the CPU', () => {
  const torch =
    "UserWarning: User provided device_type of 'cuda', but CUDA is not available. Disabling\n  warnings.warn(";
  expect(cpuFallbackIssue(torch)?.code).toBe('cpu_by_accident');
  expect(cpuFallbackIssue('CUDA is available')).toBeNull();
});

test('detects a model download during the measurement', () => {
  // huggingface_hub 0.36 and transformers 5 write such progress bars to stderr, with carriage returns.
  const bar =
    'model.safetensors:   0%|          | 0.00/2.20G [00:00<?, ?B/s]\r' +
    'model.safetensors:  48%|████▊     | 1.06G/2.20G [00:10<00:10, 104MB/s]\r' +
    'model.safetensors: 100%|██████████| 2.20G/2.20G [00:21<00:00, 104MB/s]\n';
  expect(downloadIssue(bar)?.text).toMatch(/model\.safetensors, 2\.20GB in 00:21.*run it again/s);
  expect(downloadIssue('Loading weights: 100%|████| 201/201 [00:00<00:00, 999it/s]')).toBeNull();
  expect(downloadIssue('prompts.json: 100%|████| 1.2k/1.2k [00:00<00:00, 1.1MB/s]')).toBeNull();
});

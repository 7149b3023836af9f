import { describe, expect, test } from 'vitest';
import { detectCpu } from '../../hardware/cpu.js';
import { doctorDataSchema } from '../../model/documents/doctor.js';
import type { DoctorFacts, NvidiaFacts, PythonFacts } from './facts.js';
import { evaluators } from '../run/run-options.js';
import { doctorIds, judge } from './judge.js';

const noNvidia: NvidiaFacts = {
  nvml: null,
  nvmlReason: { code: 'library_missing', text: 'libnvidia-ml.so.1: cannot open shared object file' },
  kernelModule: null,
  countersAdminOnly: null,
  sysAdmin: false,
  perfEventParanoid: 2,
};

const laptop: DoctorFacts = {
  platform: 'linux',
  nodeVersion: '20.20.2',
  engine: { version: '1.30.0', works: true, detail: 'ran a model' },
  duckdb: { version: '1.5.5-r.5', works: true, detail: 'ran a query' },
  home: { path: '/home/a/.local/share/inferscope', writable: true, reason: null, freeBytes: 50e9 },
  temporary: { path: '/tmp', writable: true, reason: null, freeBytes: 50e9 },
  cpu: detectCpu(),
  memoryAvailableBytes: 8e9,
  pciGpus: { nvidia: 0, amd: 0 },
  nvidia: noNvidia,
  nsys: null,
  ncu: null,
  python: null,
  pythonSetting: null,
  huggingFace: null,
  docker: null,
  amd: { kfd: false, names: [], rocmSmi: null, amdSmi: null, rocminfo: null },
  slurm: null,
};

const torch: PythonFacts = {
  command: 'python3',
  version: '3.12.3',
  packages: { torch: '2.11.0', transformers: '5.17.0', accelerate: '1.15.0', vllm: null },
  torchCuda: '13.0',
  torchHip: null,
  torchDevices: { available: true, names: ['NVIDIA H200'] },
};

/** Name, memory and versions as printed by nvidia-smi -q on a real H200. */
const h200: DoctorFacts = {
  ...laptop,
  pciGpus: { nvidia: 1, amd: 0 },
  nvidia: {
    nvml: {
      driverVersion: '580.159.04',
      cudaVersion: '13.0',
      devices: [
        {
          name: 'NVIDIA H200',
          memoryTotalBytes: 143771 * 2 ** 20,
          computeCapability: '9.0',
          migEnabled: false,
          computeProcesses: 0,
        },
      ],
    },
    nvmlReason: null,
    kernelModule: '580.159.04',
    countersAdminOnly: true,
    sysAdmin: true,
    perfEventParanoid: 4,
  },
  nsys: { path: '/opt/nvidia/nsight-systems/2025.3.1/bin/nsys', onPath: false, version: '2025.3.1.90' },
  ncu: { path: '/usr/local/cuda/bin/ncu', onPath: true, version: '2025.3.1.0' },
  python: torch,
  huggingFace: 'file',
};

const rowOf = (facts: DoctorFacts, id: string) => judge(facts).rows.find((row) => row.id === id)!;

describe('whole machines', () => {
  test('a laptop without GPU, Python and Docker can run the main commands', () => {
    const data = judge(laptop);
    expect(data.ok).toBe(true);
    expect(data.summary).toBe('embedded CPU engine: yes; NVIDIA capture: no GPU found; PyTorch: no Python');
    expect(data.rows.filter((row) => row.status === 'ok').map((row) => row.id)).toEqual(
      expect.arrayContaining(['node', 'engine', 'duckdb', 'home', 'disk', 'memory', 'cpu']),
    );
    expect(rowOf(laptop, 'ncu').status).toBe('not_applicable');
  });

  test('an H200 with everything installed', () => {
    const data = judge(h200, ['gpu', 'nsys', 'ncu', 'ncu_counters', 'torch_gpu']);
    expect(data.ok).toBe(true);
    expect(data.summary).toBe(
      'embedded CPU engine: yes; NVIDIA capture: nsys + ncu + telemetry; PyTorch: yes, CUDA 13.0',
    );
    expect(rowOf(h200, 'gpu').found).toBe('NVIDIA H200, 140 GiB, compute capability 9.0');
    expect(rowOf(h200, 'nsys').found).toContain('not on PATH: /opt/nvidia/nsight-systems/2025.3.1/bin/nsys');
    expect(rowOf(h200, 'vllm')).toMatchObject({ status: 'missing', fix: 'python3 -m pip install vllm' });
  });

  test.each([laptop, h200])(
    'ids are those --require takes; every row that is not ok says how to fix it',
    (facts) => {
      const data = doctorDataSchema.parse(judge(facts));
      expect(data.rows.map((row) => row.id)).toEqual(doctorIds);
      for (const row of data.rows) {
        expect(row.found.length, row.id).toBeGreaterThan(0);
        if (row.status === 'ok') expect(row.fix, row.id).toBeNull();
        else expect(row.fix!.length, row.id).toBeGreaterThan(8);
      }
    },
  );
});

describe('exit status', () => {
  test('a required row that is missing, or not applicable, fails', () => {
    expect(judge(laptop, ['gpu']).ok).toBe(false);
    expect(judge(laptop, ['ncu']).ok).toBe(false);
    expect(judge(laptop, ['cpu']).ok).toBe(true);
  });

  test.each([
    ['duckdb', { duckdb: { version: '1.5.5', works: false, detail: 'it was killed by SIGILL' } }],
    ['home', { home: { ...laptop.home, writable: false, reason: 'EROFS: read-only file system' } }],
    ['tmp', { temporary: { ...laptop.temporary, writable: false, reason: 'ENOENT: no such directory' } }],
    ['disk', { home: { ...laptop.home, freeBytes: 300e6 } }],
    ['node', { nodeVersion: '20.18.3' }],
  ] as const)('%s', (id, change) => {
    const data = judge({ ...laptop, ...change });
    expect(data.ok).toBe(false);
    expect(data.rows.filter((row) => row.required && row.status !== 'ok').map((row) => row.id)).toEqual([id]);
    expect(data.capabilities[0]).toMatchObject({ id: 'embedded_engine', usable: false });
  });

  test('the embedded engine is optional unless required by name', () => {
    const bare = { ...laptop, engine: { version: null, works: false, detail: 'not installed' } };
    expect(judge(bare).ok).toBe(true);
    expect(judge(bare).capabilities[0]).toMatchObject({ id: 'embedded_engine', usable: false });
    expect(judge(bare, ['engine']).ok).toBe(false);
  });

  test.each([
    ['20.19.0', 'ok'],
    ['22.0.0', 'ok'],
    ['18.20.8', 'missing'],
  ])('Node %s is %s', (nodeVersion, status) => {
    expect(rowOf({ ...laptop, nodeVersion }, 'node').status).toBe(status);
  });
});

describe('NVIDIA', () => {
  const h200With = (nvidia: Partial<NvidiaFacts>): DoctorFacts => ({
    ...h200,
    nvidia: { ...h200.nvidia, ...nvidia },
  });

  test('predicts ERR_NVGPUCTRPERM if only administrators may read counters, with the driver option', () => {
    const row = rowOf(h200With({ sysAdmin: false }), 'ncu_counters');
    expect(row.status).toBe('missing');
    expect(row.found).toContain('ERR_NVGPUCTRPERM');
    expect(row.fix).toContain('NVreg_RestrictProfilingToAdminUsers=0');
    expect(row.fix).toContain('--cap-add=SYS_ADMIN');
    expect(judge(h200With({ sysAdmin: false })).summary).toContain('nsys + ncu without counters + telemetry');
  });

  test('counters allowed for all users, or unknown', () => {
    expect(rowOf(h200With({ sysAdmin: false, countersAdminOnly: false }), 'ncu_counters').status).toBe('ok');
    expect(rowOf(h200With({ sysAdmin: false, countersAdminOnly: null }), 'ncu_counters').status).toBe(
      'warning',
    );
  });

  test('perf_event_paranoid 4 warns an ordinary user, and says that CUDA tracing works', () => {
    const row = rowOf(h200With({ sysAdmin: false }), 'nsys_sampling');
    expect(row.status).toBe('warning');
    expect(row.fix).toContain('sysctl kernel.perf_event_paranoid=2');
  });

  test('a GPU on the bus without driver; a library that is newer than the kernel module', () => {
    const bare = { ...laptop, pciGpus: { nvidia: 2, amd: 0 } };
    expect(rowOf(bare, 'gpu')).toMatchObject({ status: 'missing', found: '2 on the PCI bus, none usable' });
    expect(judge(bare).summary).toContain('NVIDIA capture: no, the GPU is not usable');
    const mismatch = h200With({
      nvml: null,
      nvmlReason: { code: 'init_failed', text: 'nvmlInit_v2 answered NVML_ERROR_LIB_RM_VERSION_MISMATCH' },
    });
    expect(rowOf(mismatch, 'nvml').fix).toContain('reboot');
  });

  test('eight equal GPUs are counted, other processes on them are reported', () => {
    const device = { ...h200.nvidia.nvml!.devices[0]!, computeProcesses: 1 };
    const many = h200With({
      nvml: { ...h200.nvidia.nvml!, devices: Array.from({ length: 8 }, () => device) },
    });
    expect(rowOf(many, 'gpu').found).toMatch(/^8 × NVIDIA H200, .*8 compute processes running$/);
  });
});

describe('rows of tools that `run` starts', () => {
  const bare: DoctorFacts = { ...h200, nsys: null, ncu: null, python: { ...torch, packages: {} } };
  const mute: DoctorFacts = {
    ...h200,
    nvidia: { ...h200.nvidia, sysAdmin: false },
    nsys: { ...h200.nsys!, version: null },
    ncu: { ...h200.ncu!, version: null },
  };
  test.each([
    ['nsys', bare, 'nsys'],
    ['nsys', laptop, 'nsys'],
    ['nsys', mute, 'nsys'],
    ['nsys_sampling', mute, 'nsys'],
    ['ncu', bare, 'nsys,ncu'],
    ['ncu', mute, 'ncu'],
    // Suggests the tool that works without counters.
    ['ncu_counters', mute, 'nsys'],
    ['torch', bare, 'torch'],
  ])('%s names the command', (id, facts, list) => {
    const row = rowOf(facts, id);
    expect(row.status).not.toBe('ok');
    expect(row.fix).toContain(`inferscope run --evaluator ${list} -- <command>`);
  });

  test('every --evaluator in a fix is one that run accepts', () => {
    const fixes = [laptop, bare, mute].flatMap((facts) => judge(facts).rows.map(({ fix }) => fix ?? ''));
    const named = fixes.flatMap((fix) =>
      [...fix.matchAll(/--evaluator ([a-z,]+)/g)].map((found) => found[1]!),
    );
    expect(named.length).toBeGreaterThan(8);
    for (const word of named.flatMap((list) => list.split(','))) expect(evaluators).toContain(word);
  });
});

describe('Python', () => {
  const python = (change: Partial<PythonFacts>): DoctorFacts => ({
    ...h200,
    python: { ...torch, ...change },
  });

  test('a named Python that does not run is not to be installed', () => {
    const none = { ...h200, python: null };
    expect(rowOf(none, 'python').fix).toContain('apt install python3');
    // Nothing can be installed into a Python that does not run.
    for (const id of ['torch', 'torch_gpu', 'transformers', 'accelerate', 'vllm'])
      expect(rowOf(none, id)).toMatchObject({ status: 'not_applicable', found: 'no Python' });
    const named = rowOf({ ...none, pythonSetting: '/opt/none/python' }, 'python');
    expect(named).toMatchObject({
      status: 'missing',
      fix: expect.stringContaining('unset INFERSCOPE_PYTHON'),
    });
    expect(named.found).toContain('/opt/none/python');
  });

  test('warns of a CPU build on a GPU machine', () => {
    const row = rowOf(
      python({ torchCuda: null, torchDevices: { available: false, names: [] } }),
      'torch_gpu',
    );
    expect(row).toMatchObject({ status: 'missing', fix: 'python3 -m pip install --force-reinstall torch' });
    expect(row.found).toContain('CPU build');
  });

  test('torch newer than the driver', () => {
    const row = rowOf(python({ torchDevices: { available: false, names: [] } }), 'torch_gpu');
    expect(row.fix).toContain('CUDA 13.0');
    expect(row.fix).toContain('CUDA_VISIBLE_DEVICES');
  });

  test('torch that cannot be imported is a warning with its error', () => {
    const facts = python({ torchDevices: { failed: 'ImportError: libcudart.so.13' } });
    const row = rowOf(facts, 'torch_gpu');
    expect(row.status).toBe('warning');
    expect(row.found).toContain('libcudart.so.13');
    expect(judge(facts).capabilities.find(({ id }) => id === 'pytorch')).toMatchObject({
      usable: false,
      text: 'no, torch did not respond',
    });
  });
});

test('AMD: names the card and reports a missing driver interface', () => {
  const rocm = {
    ...laptop,
    pciGpus: { nvidia: 0, amd: 1 },
    amd: {
      kfd: true,
      names: ['AMD Instinct MI300X'],
      rocmSmi: { path: '/opt/rocm/bin/rocm-smi', onPath: false, version: '2.3.1' },
      amdSmi: null,
      rocminfo: { path: '/usr/bin/rocminfo', onPath: true, version: null },
    },
  };
  expect(judge(rocm).summary).toContain('AMD: AMD Instinct MI300X');
  expect(rowOf(rocm, 'amd_smi').status).toBe('missing');
  const noKfd = { ...rocm, amd: { ...rocm.amd, kfd: false, names: [] } };
  expect(rowOf(noKfd, 'amd_gpu')).toMatchObject({
    status: 'missing',
    found: '1 on the PCI bus, no /dev/kfd',
  });
});

describe('a cluster', () => {
  const slurm = { version: '22.05.8', killWaitS: 30, nodes: 4, reason: null, homeOfOneHost: true };
  test('sessions on a local disk cannot be read by other nodes', () => {
    expect(rowOf({ ...laptop, slurm }, 'slurm_home')).toMatchObject({
      status: 'warning',
      found: '/home/a/.local/share/inferscope is on a disk of this host; 4 nodes',
      fix: expect.stringContaining('INFERSCOPE_HOME=/a/shared/folder'),
    });
    for (const fine of [{ nodes: 1 }, { homeOfOneHost: false }, { nodes: null }])
      expect(rowOf({ ...laptop, slurm: { ...slurm, ...fine } }, 'slurm_home').status).toBe('ok');
  });

  test('reports the time until Slurm kills a job, a controller that does not answer, and no Slurm', () => {
    expect(rowOf({ ...laptop, slurm }, 'slurm').found).toContain('22.05.8; SIGKILL 30 s after');
    const gone = { ...slurm, version: null, killWaitS: null, nodes: null, reason: 'Unable to contact' };
    expect(rowOf({ ...laptop, slurm: gone }, 'slurm')).toMatchObject({ status: 'missing' });
    expect(rowOf(laptop, 'slurm').status).toBe('not_applicable');
  });
});

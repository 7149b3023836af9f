import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import { dirname, join } from 'node:path';
import { onnx } from 'onnx-proto';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { findTool, findExecutables, findOnPath } from './find-tool.js';
import { parseSlurm } from './probe-slurm.js';
import { parseDockerInfo, parseRocminfo } from './probe-containers.js';
import { probeFolder, probeHome, probePciGpus } from './probe-host.js';
import { hasSysAdmin, parseAdminOnly, parseKernelModule } from './probe-nvidia.js';
import { checkDuckdb, checkEngine, checkPackage, squareModel } from './probe-packages.js';
import { probeHuggingFace, probePython } from './probe-python.js';
import { runTool } from './run-tool.js';

const root = mkdtempSync(join(os.tmpdir(), 'inferscope-doctor-test-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

function file(path: string, text: string, mode = 0o644): string {
  const full = join(root, path);
  mkdirSync(dirname(full), { recursive: true });
  writeFileSync(full, text);
  chmodSync(full, mode);
  return full;
}

describe('native packages, each tested in its own process', () => {
  test('the engine runs a model, DuckDB a query', async () => {
    const [engine, duckdb] = await Promise.all([checkEngine(60_000), checkDuckdb(60_000)]);
    if (engine.version !== null) expect(engine).toMatchObject({ works: true, detail: 'ran a model' });
    expect(duckdb).toMatchObject({ works: true, detail: 'ran a query' });
  });

  test('the tested model is y = x · x', () => {
    const { graph } = onnx.ModelProto.decode(Buffer.from(squareModel, 'base64'));
    expect(graph?.node?.map((node) => [node.opType, node.input, node.output])).toEqual([
      ['Mul', ['x', 'x'], ['y']],
    ]);
  });

  test('distinguishes a package that throws, crashes or hangs', async () => {
    expect(await checkPackage('zod', "throw new Error('wrong ELF class: ELFCLASS32')", 20_000)).toMatchObject(
      {
        works: false,
        detail: 'Error: wrong ELF class: ELFCLASS32',
      },
    );
    expect((await checkPackage('zod', "process.kill(process.pid, 'SIGSEGV')", 20_000)).detail).toContain(
      'SIGSEGV',
    );
    expect((await checkPackage('zod', 'setInterval(() => {}, 1000)', 500)).detail).toContain('timed out');
    expect((await checkPackage('no-such-package-of-inferscope', '', 500)).detail).toBe('not installed');
  });
});

describe('home', () => {
  test('a folder that does not exist yet is writable if its parent is, and is not created', () => {
    const home = join(root, 'not', 'yet');
    expect(probeHome(home)).toMatchObject({ writable: true, reason: null });
    expect(probeHome(home).freeBytes).toBeGreaterThan(0);
    expect(readdirSync(root).filter((name) => name === 'not' || name.startsWith('.inferscope'))).toEqual([]);
  });

  test('a temporary folder that does not exist is not writable', () => {
    expect(probeFolder(join(root, 'not-there'))).toMatchObject({
      writable: false,
      reason: expect.stringContaining('ENOENT') as string,
    });
  });

  test('a folder below a file is not writable', () => {
    const below = join(file('a-file', 'x'), 'home');
    expect(probeHome(below)).toMatchObject({
      writable: false,
      reason: expect.stringContaining('ENOTDIR') as string,
    });
  });
});

test('PCI: lists one NVIDIA 3D controller and one AMD Instinct, without a NIC and an NVIDIA audio function', () => {
  const devices = [
    ['0000:00:06.0', '0x10de', '0x030200'],
    ['0000:00:06.1', '0x10de', '0x040300'],
    ['0000:05:00.0', '0x1002', '0x120000'],
    ['0000:00:03.0', '0x1af4', '0x020000'],
  ] as const;
  for (const [slot, vendor, kind] of devices) {
    file(`pci/sys/bus/pci/devices/${slot}/vendor`, `${vendor}\n`);
    file(`pci/sys/bus/pci/devices/${slot}/class`, `${kind}\n`);
  }
  expect(probePciGpus(join(root, 'pci'))).toEqual({ nvidia: 1, amd: 1 });
  expect(probePciGpus(join(root, 'nothing'))).toBeNull();
});

describe('NVIDIA texts', () => {
  test('kernel module: open and proprietary', () => {
    const open =
      'NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (dvs-builder@U22-I3)\nGCC version:  gcc version 12.3.0\n';
    const closed =
      'NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024\n';
    expect(parseKernelModule(open)).toBe('580.159.04');
    expect(parseKernelModule(closed)).toBe('535.183.01');
    expect(parseKernelModule('')).toBeNull();
  });

  test('RmProfilingAdminOnly', () => {
    expect(
      parseAdminOnly('EnableGpuFirmware: 18\nRmProfilingAdminOnly: 1\nPreserveVideoMemoryAllocations: 0\n'),
    ).toBe(true);
    expect(parseAdminOnly('RmProfilingAdminOnly: 0\n')).toBe(false);
    expect(parseAdminOnly('')).toBeNull();
  });

  test('CAP_SYS_ADMIN: root of a host has it, root of a Docker container does not', () => {
    expect(hasSysAdmin('CapPrm:\t000001ffffffffff\nCapEff:\t000001ffffffffff\n')).toBe(true);
    expect(hasSysAdmin('CapEff:\t00000000a80425fb\n')).toBe(false);
    expect(hasSysAdmin('CapEff:\t0000000000000000\n')).toBe(false);
  });
});

describe('finding tools', () => {
  test('newest version first, only executables, version from the tool itself', async () => {
    const script = (version: string) =>
      `#!/bin/sh\necho "NVIDIA Nsight Systems version ${version}-253135822126v0"\n`;
    file('opt/nsight-systems/2024.9.1/bin/nsys', script('2024.9.1.1'), 0o755);
    const newest = file('opt/nsight-systems/2024.11.2/bin/nsys', script('2024.11.2.90'), 0o755);
    file('opt/nsight-systems/2025.1.1/bin/nsys', script('2025.1.1.1'), 0o644);
    const pattern = `${root}/opt/nsight-systems/*/bin/nsys`;
    expect(findExecutables(pattern)[0]).toBe(newest);
    const search = { name: 'nsys', patterns: [pattern], versionArgs: ['--version'], timeoutMs: 10_000 };
    expect(await findTool({ ...search, version: /version\s+(\d+(?:\.\d+)+)/i }, '')).toEqual({
      path: newest,
      onPath: false,
      version: '2024.11.2.90',
    });
    expect(findOnPath('nsys', dirname(newest))).toBe(newest);
    expect(findOnPath('nsys', '')).toBeNull();
  });

  test('a tool that does not exist or hangs', async () => {
    expect(await runTool(join(root, 'none'), [], { timeoutMs: 1000 })).toMatchObject({
      ok: false,
      notFound: true,
    });
    expect(
      await runTool(process.execPath, ['-e', 'setInterval(()=>{},9)'], { timeoutMs: 300 }),
    ).toMatchObject({
      timedOut: true,
    });
  });
});

describe('Docker and ROCm texts', () => {
  test('docker 28.2.2 without a daemon: the client still answers', () => {
    const facts = parseDockerInfo(
      '{"ServerVersion":"","Runtimes":null,"Warnings":null,"ClientInfo":{"Version":"28.2.2","Context":"default"}}',
      'Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?\n',
    );
    expect(facts).toEqual({
      clientVersion: '28.2.2',
      serverVersion: null,
      reason:
        'Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?',
      nvidiaRuntime: false,
    });
  });

  test('a daemon with the nvidia runtime; output that is not JSON', () => {
    const info =
      '{"ServerVersion":"26.1.3","Runtimes":{"io.containerd.runc.v2":{"path":"runc"},"nvidia":{"path":"nvidia-container-runtime"}},"ClientInfo":{"Version":"26.1.3"}}';
    expect(parseDockerInfo(info, '')).toMatchObject({
      serverVersion: '26.1.3',
      reason: null,
      nvidiaRuntime: true,
    });
    expect(parseDockerInfo('', 'permission denied\n')).toMatchObject({ reason: 'permission denied' });
  });

  test('rocminfo: the GPU agents, not the CPU', () => {
    const agent = (n: number, name: string, type: string) =>
      `*******                  \nAgent ${n}                  \n*******                  \n  Name:                    gfx\n  Marketing Name:          ${name}                \n  Vendor Name:             AMD\n  Device Type:             ${type}                \n`;
    const listing = `HSA Agents               \n==========               \n${agent(1, 'AMD EPYC 9654 96-Core Processor', 'CPU')}${agent(2, 'AMD Instinct MI300X', 'GPU')}*** Done ***\n`;
    expect(parseRocminfo(listing)).toEqual(['AMD Instinct MI300X']);
    expect(parseRocminfo('')).toEqual([]);
  });
});

describe('Hugging Face token: present or not, never read', () => {
  test('environment, then the file, where huggingface_hub looks', () => {
    const home = join(root, 'hf-home');
    expect(probeHuggingFace({ HOME: home })).toBeNull();
    expect(probeHuggingFace({ HOME: home, HF_TOKEN: '  ' })).toBeNull();
    expect(probeHuggingFace({ HOME: home, HF_TOKEN: 'hf_x' })).toBe('environment');
    file('hf-home/.cache/huggingface/token', 'hf_x');
    expect(probeHuggingFace({ HOME: home })).toBe('file');
    expect(probeHuggingFace({ HOME: home, HF_HOME: join(root, 'elsewhere') })).toBeNull();
    file('empty-token', '');
    expect(probeHuggingFace({ HOME: home, HF_TOKEN_PATH: join(root, 'empty-token') })).toBeNull();
  });
});

const python = (() => {
  try {
    return execFileSync('python3', ['--version'], { encoding: 'utf8' }).trim().split(' ')[1];
  } catch {
    return null;
  }
})();

describe.runIf(python)(`Python ${python ?? 'is not installed'}`, () => {
  const before = process.env['PYTHONPATH'];
  afterEach(() => {
    if (before === undefined) delete process.env['PYTHONPATH'];
    else process.env['PYTHONPATH'] = before;
  });

  test('versions from metadata, CUDA from torch/version.py, and a torch that fails to import', async () => {
    const site = join(root, 'site');
    file('site/torch-2.3.0.dist-info/METADATA', 'Metadata-Version: 2.1\nName: torch\nVersion: 2.3.0\n');
    file(
      'site/transformers-4.44.0.dist-info/METADATA',
      'Metadata-Version: 2.1\nName: transformers\nVersion: 4.44.0\n',
    );
    // Content of a CUDA wheel of torch 2.3.
    file(
      'site/torch/version.py',
      "from typing import Optional\n\n__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip']\n__version__ = '2.3.0+cu121'\ndebug = False\ncuda: Optional[str] = '12.1'\ngit_version = '97ff6cfd9c86c5c09d7ce775ab64ec5c99230f5d'\nhip: Optional[str] = None\n",
    );
    file('site/torch/__init__.py', "raise ImportError('libcudart.so.12: cannot open shared object file')\n");
    process.env['PYTHONPATH'] = site;
    const facts = await probePython({ versionsMs: 30_000, devicesMs: 30_000 });
    expect(facts).toMatchObject({
      command: 'python3',
      version: python,
      packages: { torch: '2.3.0', transformers: '4.44.0' },
      torchCuda: '12.1',
      torchHip: null,
      torchDevices: { failed: 'ImportError: libcudart.so.12: cannot open shared object file' },
    });
  });
});

test('reads Slurm 22.05 output of scontrol and sinfo', () => {
  const config =
    'Configuration data as of 2026-11-28T11:20:00\nKillOnBadExit           = 0\nKillWait                = 30 sec\nSLURM_VERSION           = 22.05.8\n';
  expect(parseSlurm(config, '3\n2\n')).toEqual({ version: '22.05.8', killWaitS: 30, nodes: 5 });
  expect(parseSlurm('', '')).toEqual({ version: null, killWaitS: null, nodes: null });
});

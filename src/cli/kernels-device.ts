import process from 'node:process';
import { onnxRunner, type OnnxRunner } from '../capture/onnx/kernel-runner.js';
import { torchRunner, type TorchRunner } from '../capture/kernels/runner.js';
import { driverIndex } from '../capture/roofline/conditions.js';
import { openGpus } from '../capture/telemetry-gpus.js';
import { gpuSheet } from '../hardware/gpu-peaks.js';
import type { Issue } from '../model/document.js';
import { InferscopeError } from '../model/errors.js';
import type { KernelRunner } from '../model/kernels.js';
import type { KernelsOptions } from './kernels-option-values.js';
import type { PeakDType } from '../hardware/gpu-sheet.js';

export interface ChosenDevice {
  runner: KernelRunner;
  threads: number | null;
  /** Name of the GPU in PyTorch; null on a CPU. */
  gpuName: string | null;
  /** Scope of the GPU's samples, such as gpu0; null on a CPU. */
  scope: string | null;
  freeBytes: number | null;
  dtypes: string[];
  issues: Issue[];
}

/**
 * Chooses the engine that runs the kernels. Default: PyTorch if it finds a GPU, else the embedded engine on the CPU.
 * @throws E_ENGINE_MISSING, E_USAGE, E_DTYPE
 */
export async function chooseDevice(options: KernelsOptions): Promise<ChosenDevice> {
  const { runner, issues } = await chooseRunner(options);
  const onGpu = runner.device !== 'cpu';
  const index = Number(/:(\d+)$/.exec(runner.device)?.[1] ?? 0);
  const gpuName = onGpu ? ((runner as TorchRunner).gpus[index] ?? null) : null;
  const gpu = onGpu ? await gpuFacts(index) : null;
  const dtypes = options.dtype ?? [defaultDType(gpuName, onGpu)];
  checkDTypes(dtypes, runner, gpuName);
  if (options.backend && runner.name === 'onnxruntime') throw noBackends();
  return {
    runner,
    threads: runner.name === 'onnxruntime' ? (runner as OnnxRunner).threads : null,
    gpuName,
    scope: gpu?.scope ?? null,
    freeBytes: onGpu ? (gpu?.freeBytes ?? null) : process.availableMemory(),
    dtypes,
    issues,
  };
}

async function chooseRunner(options: KernelsOptions): Promise<{ runner: KernelRunner; issues: Issue[] }> {
  const { engine, device = null, python = null, threads = null } = options;
  const embedded = (text: string | null) =>
    onnxRunner({ threads }).then((runner): { runner: KernelRunner; issues: Issue[] } => ({
      runner,
      issues: text === null ? [] : [{ code: 'embedded_engine', severity: 'info', text }],
    }));
  if (engine === 'onnx') {
    if (device !== null && device !== 'cpu') throw noDevice(device);
    return embedded(null);
  }
  if (engine === 'torch' || python !== null || (device !== null && device !== 'cpu'))
    return { runner: await torchRunner({ python, device }), issues: [] };
  if (device === 'cpu') return embedded(null);
  const { gpus, reason } = await openGpus();
  gpus?.close();
  // Finding a Python takes seconds and is useless without a GPU.
  if (!gpus) return embedded(`Measured on the CPU with the embedded engine: no GPU. ${reason.text}`);
  try {
    const runner = await torchRunner({ python, device });
    if (runner.device !== 'cpu') return { runner, issues: [] };
    return await embedded('Measured on the CPU with the embedded engine: PyTorch finds no GPU.');
  } catch (error) {
    if (!(error instanceof InferscopeError) || error.code !== 'E_ENGINE_MISSING') throw error;
    return embedded(`Measured on the CPU with the embedded engine: ${error.parts.what}. ${error.parts.fix}`);
  }
}

async function gpuFacts(index: number): Promise<{ scope: string; freeBytes: number | null } | null> {
  const { gpus } = await openGpus();
  if (!gpus) return null;
  try {
    const driverGpu = driverIndex(index, gpus.devices);
    const device = gpus.devices.find((gpuDevice) => gpuDevice.index === driverGpu);
    return { scope: `gpu${driverGpu}`, freeBytes: device?.sample().memoryFreeBytes ?? null };
  } finally {
    gpus.close();
  }
}

function defaultDType(gpuName: string | null, onGpu: boolean): string {
  if (!onGpu) return 'float32';
  const sheet = gpuName === null ? null : gpuSheet(gpuName);
  return sheet && sheet.denseTflops.bfloat16 === undefined ? 'float16' : 'bfloat16';
}

function checkDTypes(dtypes: readonly string[], runner: KernelRunner, gpuName: string | null): void {
  if (runner.name === 'onnxruntime') {
    const other = dtypes.find((dtype) => dtype !== 'float32');
    if (other === undefined) return;
    throw new InferscopeError('E_DTYPE', {
      what: `the embedded engine does not support ${other} kernels`,
      why: "ONNX Runtime's CPU kernels compute in float32; most other dtypes are cast to it.",
      fix: 'Remove --dtype, or measure with PyTorch: --engine torch',
    });
  }
  const sheet = gpuName === null ? null : gpuSheet(gpuName);
  const unsupported = sheet && dtypes.find((dtype) => sheet.denseTflops[dtype as PeakDType] === undefined);
  if (!sheet || !unsupported) return;
  throw new InferscopeError('E_DTYPE', {
    what: `${gpuName} does not support ${unsupported}`,
    why: `Its data sheet (${sheet.source.document}) has ${Object.keys(sheet.denseTflops).join(', ')}.`,
    fix: `Type for example: --dtype ${defaultDType(gpuName, true)}`,
  });
}

function noDevice(device: string): InferscopeError {
  return new InferscopeError('E_USAGE', {
    what: `the embedded engine has no device ${device}`,
    why: 'It runs on the CPU only.',
    fix: 'Remove --device, or use --engine torch for a GPU.',
  });
}

function noBackends(): InferscopeError {
  return new InferscopeError('E_USAGE', {
    what: 'the embedded engine has no attention backends',
    why: 'flash, efficient, cudnn and math are backends of PyTorch.',
    fix: 'Remove --backend, or use --engine torch.',
  });
}

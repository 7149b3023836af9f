import { setTimeout as sleep } from 'node:timers/promises';
import process from 'node:process';
import { defaultThreads } from '../../engines/onnx/decoder.js';
import { loadOnnxRuntime } from '../../engines/onnx/runtime.js';
import { detectCpu } from '../../hardware/cpu.js';
import { packageVersion } from '../../hardware/environment.js';
import type { EngineLaunch } from '../../model/engine.js';
import type { KernelControl, KernelOrder, KernelRunner } from '../../model/kernels.js';
import { recordVariable } from '../record-writer.js';
import { startEngineProcess } from './engine-process.js';
import type { KernelChildProgress, KernelPlan } from './kernel-plan.js';

/** Above this size, generating the values and writing the weights takes longer than measuring. */
const maxRotated = 128 * 2 ** 20;
/** If an operation takes longer than this after Ctrl-C, its process is killed. */
const graceMs = 10_000;

export interface OnnxRunner extends KernelRunner {
  threads: number;
}

/**
 * The embedded engine as a kernel runner: the CPU, on any machine.
 * @throws E_ENGINE_MISSING
 */
export async function onnxRunner(options: { threads: number | null }): Promise<OnnxRunner> {
  const version = packageVersion('onnxruntime-node');
  // Loading it here would only cost memory. If it is missing, fail before anything is measured.
  if (version === null) await loadOnnxRuntime();
  const cpu = detectCpu();
  const threads = options.threads ?? defaultThreads(cpu.usableCores);
  const lastLevel = (cpu.caches.l3 ?? cpu.caches.l2)?.bytes ?? maxRotated / 2;
  const rotateBytes = Math.min(maxRotated, 2 * lastLevel);
  return {
    name: 'onnxruntime',
    version,
    device: 'cpu',
    threads,
    launch: (order, control) => launch(order, control, { threads, rotateBytes }),
  };
}

function launch(
  order: KernelOrder,
  { recordPath, scratch, signal, onProgress, onDevice }: KernelControl,
  settings: Pick<KernelPlan, 'threads' | 'rotateBytes'>,
): EngineLaunch {
  const plan: KernelPlan = { order: { ...order, device: 'cpu' }, scratch, ...settings };
  const child = startEngineProcess<KernelPlan, KernelChildProgress, null>('kernel-child', plan, {
    what: `${order.cases.length} kernel cases`,
    env: { [recordVariable]: recordPath },
    signal,
    onProgress: (progress) => (progress.type === 'device' ? onDevice(progress.device) : onProgress(progress)),
  });
  const exited = new AbortController();
  const end = () => void killAfterGrace(child.pid, exited.signal);
  if (signal.aborted) end();
  else signal.addEventListener('abort', end, { once: true });
  const ended = child.result
    .then(
      () => ({ failure: null as unknown, log: null }),
      (failure: unknown) => ({ failure, log: null }),
    )
    .finally(() => {
      signal.removeEventListener('abort', end);
      exited.abort();
    });
  return { pid: child.pid, ended };
}

async function killAfterGrace(pid: number, exited: AbortSignal): Promise<void> {
  try {
    await sleep(graceMs, undefined, { signal: exited, ref: false });
    process.kill(pid, 'SIGKILL');
  } catch {
    // It stopped in time.
  }
}

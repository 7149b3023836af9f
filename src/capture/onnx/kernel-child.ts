import os from 'node:os';
import process from 'node:process';
import { measureCase } from '../../engines/onnx/microbenchmark-case.js';
import { loadOnnxRuntime } from '../../engines/onnx/runtime.js';
import { detectCpu } from '../../hardware/cpu.js';
import { packageVersion } from '../../hardware/environment.js';
import { recordVariable, recordWriter } from '../record-writer.js';
import { serveEngineProcess } from './engine-process.js';
import type { KernelChildProgress, KernelPlan } from './kernel-plan.js';

/** Measures an order's cases through ONNX Runtime; each case is written to the record file when it is done. */

serveEngineProcess<KernelPlan, KernelChildProgress, null>(run);

async function run(
  { order, threads, rotateBytes, scratch }: KernelPlan,
  { stopped, report }: { stopped: () => boolean; report: (progress: KernelChildProgress) => void },
): Promise<null> {
  const ort = await loadOnnxRuntime();
  const record = recordWriter(process.env[recordVariable]!, order.execution_id);
  record.clock();
  const cpu = detectCpu();
  report({
    type: 'device',
    device: {
      name: cpu.model ?? 'CPU',
      device: 'cpu',
      framework: `onnxruntime ${packageVersion('onnxruntime-node') ?? ''}`.trim(),
      sm_count: null,
      l2_bytes: null,
      memory_bytes: Math.min(os.totalmem(), cpu.memoryLimitBytes ?? Infinity),
      compute_capability: null,
      driver: null,
    },
  });
  const total = order.cases.length;
  const settings = { ...order, threads, rotateBytes, scratch, stopped };
  for (const [done, kernelCase] of order.cases.entries()) {
    report({ type: 'case', case: kernelCase.case, done, total });
    const { t_ns, ...measured } = stopped()
      ? { ...unmeasured(threads), outcome: 'stopped' as const, text: null }
      : await measureCase(ort, kernelCase, settings);
    record.add({ type: 'microbenchmark', ...kernelCase, ...measured, t_ns });
    record.flush();
  }
  const last = order.cases.at(-1);
  if (last) report({ type: 'case', case: last.case, done: total, total });
  record.clock();
  record.flush();
  return null;
}

function unmeasured(threads: number) {
  const now = Number(process.hrtime.bigint());
  return { t_ns: now, end_ns: now, samples_ns: [], method: 'host' as const, per_sample: 1, threads };
}

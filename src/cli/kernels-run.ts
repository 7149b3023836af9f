import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { leftWords, startCountEta } from '../capture/bench/eta.js';
import type { KernelCapture } from '../capture/kernels/capture.js';
import { measureCases } from '../capture/kernels/measure-cases.js';
import { recordUnmeasured } from '../capture/kernels/recorded-cases.js';
import { kernelWork } from '../llm/kernel-work.js';
import { InferscopeError, messageOf } from '../model/errors.js';
import type { KernelCase, KernelName } from '../model/kernels.js';
import { ensureWritable } from '../session/home.js';
import { chooseCases, type ChosenCases } from './kernels-cases.js';
import { chooseDevice, type ChosenDevice } from './kernels-device.js';
import { executionId, host, orderOf, type MeasuredKernels } from './kernels-order.js';
import { traceFolder } from './kernels-traces.js';
import type { Progress } from './progress.js';
import { type Recording, recordSession } from '../record/record-session.js';
import { recordKernels } from './kernels-save.js';
import type { KernelsOptions } from './kernels-option-values.js';
import { formatBytes, plural } from '../vocabulary/format.js';
import { caseText } from '../vocabulary/kernel-cases.js';

interface SavedKernels {
  id: string;
  folder: string;
  interrupted: boolean;
}

/**
 * Device → cases → measure → import → session. Input errors are found before anything is measured; measurements are
 * saved whatever fails later.
 */
export async function runKernels(
  names: readonly KernelName[],
  options: KernelsOptions,
  signal: AbortSignal,
  progress: Progress,
): Promise<SavedKernels> {
  ensureWritable();
  progress.update('finding a device');
  const device = await chooseDevice(options);
  const chosen = await chooseCases(names, options, {
    gpu: device.runner.device !== 'cpu',
    dtypes: device.dtypes,
  });
  const { fits, refused } = splitByMemory(chosen.cases, device);
  progress.done(titleOf(chosen, device), plural(chosen.cases.length, 'case'));
  const subject = chosen.model?.name ?? (names.length === 1 ? names[0]! : null);
  const plan = {
    label: subject === null ? 'kernels' : `kernels-${subject}`,
    kind: 'kernels',
    name: options.name ?? null,
    tags: options.tag,
    doing: 'save the measurement',
  };
  const saved = await recordSession(plan, async (recording) => {
    const request = { options, device, chosen };
    const capture = await measure(recording, fits, refused, request, signal, progress);
    progress.update('saving the session');
    const recorded = await recordKernels(recording, { ...request, capture }, titleOf(chosen, device));
    return { ...recorded, result: { interrupted: capture.stopped } };
  });
  progress.done('session saved', saved.id);
  return saved;
}

async function measure(
  recording: Recording,
  fits: readonly KernelCase[],
  refused: readonly TooLargeCase[],
  { options: typed, device }: Omit<MeasuredKernels, 'capture'>,
  signal: AbortSignal,
  progress: Progress,
): Promise<KernelCapture> {
  const recordPath = join(recording.scratch, `${executionId}.jsonl`);
  for (const { kernelCase, text } of refused)
    recordUnmeasured({ path: recordPath, execution_id: executionId }, [kernelCase], 'out_of_memory', text);
  const done = new Set<string>();
  const secondsLeft = startCountEta();
  const traces = typed.trace === true ? join(recording.scratch, traceFolder) : null;
  if (traces !== null) mkdirSync(traces, { recursive: true });
  const capture = await measureCases(orderOf(fits, device, typed, traces), {
    runner: device.runner,
    recordPath,
    scratch: recording.scratch,
    host,
    signal,
    onProgress: ({ case: caseId, done: count, total }) => {
      done.add(caseId);
      const timeLeft = leftWords(secondsLeft(count, total));
      progress.update('measuring', `${Math.min(count + 1, total)}/${total} ${timeLeft}${caseId}`);
    },
    onRows: recording.append,
  });
  if (done.size === 0 && !existsSync(recordPath)) throw nothingMeasured(capture);
  return capture;
}

interface TooLargeCase {
  kernelCase: KernelCase;
  text: string;
}

/** Skips cases with arrays larger than free memory. @throws E_OUT_OF_MEMORY when that applies to all */
function splitByMemory(
  cases: readonly KernelCase[],
  { runner, freeBytes }: Pick<ChosenDevice, 'freeBytes'> & { runner: { name: string; device: string } },
): { fits: KernelCase[]; refused: TooLargeCase[] } {
  // ONNX Runtime packs a second copy of the weights.
  const copies = runner.name === 'onnxruntime' ? 2 : 1;
  const neededBytes = (kernelCase: KernelCase) =>
    copies * kernelWork(kernelCase.kernel as KernelName, kernelCase.dtype, kernelCase.params).footprintBytes;
  const refused = cases.flatMap((kernelCase): TooLargeCase[] =>
    freeBytes !== null && neededBytes(kernelCase) > freeBytes
      ? [
          {
            kernelCase,
            text: `It needs at least ${formatBytes(neededBytes(kernelCase))}; ${formatBytes(freeBytes)} is free on ${runner.device}.`,
          },
        ]
      : [],
  );
  const refusedCases = new Set(refused.map(({ kernelCase }) => kernelCase));
  const fits = cases.filter((kernelCase) => !refusedCases.has(kernelCase));
  if (fits.length > 0 || refused.length === 0) return { fits, refused };
  throw new InferscopeError('E_OUT_OF_MEMORY', {
    what: `no case fits the memory of ${runner.device === 'cpu' ? 'this machine' : runner.device} (${caseText(refused[0]!.kernelCase.case)})`,
    why: refused[0]!.text,
    fix: 'Use a smaller --batch-size, --seq-len, --hidden-size or --context-len.',
  });
}

function titleOf({ model, cases }: ChosenCases, { runner, gpuName }: ChosenDevice): string {
  const kernels = [...new Set(cases.map(({ kernel }) => kernel))];
  const dtypes = [...new Set(cases.map(({ dtype }) => dtype))].join(', ');
  const what = model
    ? `${model.name} (${model.dtype})`
    : `${kernels.length > 3 ? `${kernels.length} kernels` : kernels.join(', ')} ${dtypes}`;
  const framework = runner.name === 'pytorch' ? 'PyTorch' : 'onnxruntime';
  return `kernels · ${what} · ${framework} ${gpuName ?? runner.device}`;
}

function nothingMeasured({ launches, stopped }: KernelCapture): InferscopeError {
  if (stopped) {
    return new InferscopeError('E_INTERRUPTED', {
      what: 'stopped before the first case',
      why: 'Nothing was measured yet, so no session was saved.',
      fix: 'Run it again.',
    });
  }
  const failure = launches.find((launch) => launch.failure !== null)?.failure;
  if (failure instanceof InferscopeError) return failure;
  return new InferscopeError('E_WORKLOAD_FAILED', {
    what: 'no kernel could be measured',
    why: failure
      ? messageOf(failure)
      : (launches.at(-1)?.log?.trim().split('\n').at(-1) ?? 'The process exited without output.'),
    fix: `Try one first: inferscope kernels gemm${process.argv.includes('--python') ? '' : ' --engine onnx'}`,
  });
}

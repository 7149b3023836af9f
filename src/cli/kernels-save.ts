import { readCachedRoofline, rooflineIssues } from '../capture/onnx/machine-roofline.js';
import { readMicrobenchmarkLines } from '../capture/roofline/microbenchmark-lines.js';
import { type Fact } from '../hardware/environment.js';
import type { Issue } from '../model/document.js';
import { type KernelPlan } from '../model/documents/kernels.js';
import { messageOf } from '../model/errors.js';
import type { Workload } from '../model/manifest.js';
import { saveRecord, sampledCapture } from '../record/save-record.js';
import type { SessionFiles } from '../session/session-files.js';
import { homeFolders } from '../session/home.js';
import { attachGpuRoofline } from './attach-roofline.js';
import { executionId, orderOf, type MeasuredKernels } from './kernels-order.js';
import { saveTraces } from './kernels-traces.js';
import type { Recorded, Recording } from '../record/record-session.js';

/** Saves record, logs, samples, plan and cached rooflines as the session. */
export async function recordKernels(
  recording: Recording,
  measured: MeasuredKernels,
  title: string,
): Promise<Recorded> {
  const { files: session, originNs, command, redact, saveJson } = recording;
  const { capture, chosen, device } = measured;
  // PyTorch chooses its number of threads and reports it with each case.
  const lines = await readMicrobenchmarkLines(capture.recordPath);
  const threads = device.threads ?? lines.find((line) => line.threads !== null)?.threads ?? null;
  const record = await saveRecord(recording, executionId, capture.recordPath);
  for (const { launch, log } of capture.launches)
    if (log !== null)
      await session.addArtifact(Buffer.from(redact(log)), {
        kind: 'log',
        captureId: record.capture.capture_id,
        name: `${executionId}-launch-${launch + 1}.log`,
      });
  const traced = await saveTraces(session, { command, redact });
  const plan: KernelPlan = { ...planOf(measured, threads), traces: traced.traces };
  await saveJson('kernel-plan', plan);
  const hardware = gpuFacts(measured);
  const roofIssues =
    device.runner.device === 'cpu'
      ? await attachCpuRoofline(session, threads)
      : await attachGpuRoofline(session, hardware);
  const { runner } = device;
  return {
    title,
    status: capture.stopped
      ? 'interrupted'
      : capture.launches.every(({ failure }) => failure === null)
        ? 'complete'
        : 'failed',
    workload: workloadOf(measured, threads),
    hardware,
    software: {
      ...(runner.name === 'pytorch' ? { torch: runner.version } : {}),
      ...(capture.device?.driver ? { nvidia_driver: capture.device.driver } : {}),
    },
    executions: [
      {
        execution_id: executionId,
        purpose: 'microbenchmark',
        command,
        exit_code: capture.launches.some(({ failure }) => failure !== null) ? null : 0,
        start_ns: capture.start_ns - originNs,
        end_ns: capture.end_ns - originNs,
      },
      ...traced.executions,
    ],
    captures: [
      record.capture,
      ...capture.sampled.map((id) => sampledCapture(id, executionId)),
      ...traced.captures,
    ],
    issues: [
      ...chosen.issues,
      ...device.issues,
      ...capture.issues,
      ...launchIssues(measured),
      ...record.record.issues,
      ...traced.issues,
      ...roofIssues,
    ],
  };
}

function planOf(
  { options: typed, device, chosen, capture }: MeasuredKernels,
  threads: number | null,
): Omit<KernelPlan, 'traces'> {
  const { runs, max_runs, max_seconds, target_half_width, graph, check, seed } = orderOf([], device, typed);
  return {
    engine: { name: device.runner.name, version: device.runner.version },
    device: device.runner.device,
    device_facts: capture.device,
    threads,
    scope: device.scope,
    protocol: { runs, max_runs, max_seconds, target_half_width, graph, check, seed },
    points: chosen.points,
    model: chosen.model && { name: chosen.model.name, dtype: chosen.model.dtype, steps: chosen.model.steps },
  };
}

function workloadOf({ device, chosen }: MeasuredKernels, threads: number | null): Workload {
  const { runner, gpuName } = device;
  return {
    model: chosen.model && {
      name: chosen.model.name,
      config: chosen.model.config,
      dtype: chosen.model.dtype,
      quantization: null,
      weights: 'random',
      num_parameters: null,
      weight_bytes: null,
    },
    engine: { name: runner.name, version: runner.version, options: gpuName === null ? {} : { gpu: gpuName } },
    device: runner.device,
    threads,
    batch_size: null,
    input_len: null,
    output_len: null,
    tensor_parallel_size: 1,
  };
}

function gpuFacts({ device, capture }: MeasuredKernels): Record<string, Fact> {
  if (device.gpuName === null) return {};
  return {
    gpu_name: device.gpuName,
    gpu_sm_count: capture.device?.sm_count ?? null,
    gpu_memory_bytes: capture.device?.memory_bytes ?? null,
    gpu_compute_capability: capture.device?.compute_capability ?? null,
  };
}

function launchIssues({ capture }: MeasuredKernels): Issue[] {
  const issues: Issue[] = capture.launches.flatMap(({ launch, failure }) =>
    failure === null || capture.stopped
      ? []
      : [
          {
            code: 'launch_failed',
            severity: 'error',
            text: `Process ${launch + 1} stopped early: ${messageOf(failure)}`,
          },
        ],
  );
  if (capture.stopped)
    issues.push({
      code: 'interrupted',
      severity: 'warning',
      text: 'Stopped by Ctrl-C or a signal: later cases are missing.',
    });
  return issues;
}

/** Saves cached rooflines; nothing is measured here. */
async function attachCpuRoofline(session: SessionFiles, threads: number | null): Promise<Issue[]> {
  const cached = threads === null ? null : await readCachedRoofline(homeFolders().cache, threads);
  if (!cached) return [];
  await session.addArtifact(Buffer.from(JSON.stringify(cached.roofline, null, 2)), {
    kind: 'roofline',
    captureId: null,
    name: 'roofline.json',
  });
  return rooflineIssues(cached);
}

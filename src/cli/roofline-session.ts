import { existsSync } from 'node:fs';
import process from 'node:process';
import { gpuRooflineArtifact } from '../analyze/roofs.js';
import type { MeasuredGpuRoofline } from '../capture/roofline/measure-gpus.js';
import { monotonicNs, realtimeNs } from '../capture/record-writer.js';
import { describeEnvironment, type Fact } from '../hardware/environment.js';
import { recordImporter } from '../import/record.js';
import type { Issue } from '../model/document.js';
import type { Capture, Execution } from '../model/manifest.js';
import { redactCommand, secretsOfEnvironment } from '../model/redaction.js';
import { toolVersion } from '../model/version.js';
import { createSession, type SessionWriter } from '../session/create.js';
import type { RooflineCommandOptions } from './roofline.js';

export interface RooflineSession {
  writer: SessionWriter;
  startedAt: Date;
  originNs: number;
  pair: { monotonic_ns: string; realtime_ns: string };
}

export async function openRooflineSession({ name, tag }: RooflineCommandOptions): Promise<RooflineSession> {
  const writer = await createSession({ label: 'gpus', kind: 'roofline', name: name ?? null, tags: tag });
  return { writer, startedAt: new Date(), originNs: monotonicNs(), pair: clockPair() };
}

const monotonic = { name: 'CLOCK_MONOTONIC', resolution_ns: 1, error_bound_ns: 0 };

/** Every case as a row of `microbenchmarks`, the sensors beside, the record files, and the roofline itself. @returns its id */
export async function keepRooflineSession(
  { writer, startedAt, originNs, pair }: RooflineSession,
  { roofline, recording }: MeasuredGpuRoofline,
  stopped: boolean,
): Promise<string> {
  const executions: Execution[] = [];
  const captures: Capture[] = [];
  const issues: Issue[] = [...roofline.issues];
  for (const capture of recording?.captures ?? []) {
    const { execution_id } = capture.order;
    executions.push({
      execution_id,
      purpose: 'microbenchmark',
      command: ['inferscope', 'roofline', execution_id],
      exit_code: capture.launches.some(({ failure }) => failure !== null) ? null : 0,
      start_ns: capture.start_ns - originNs,
      end_ns: capture.end_ns - originNs,
    });
    const of = (capture_id: string, tool: string, importer: string): Capture => ({
      capture_id,
      execution_id,
      tool: { name: tool, version: toolVersion },
      importer,
      clock: monotonic,
    });
    for (const id of capture.sampled) captures.push(of(id, 'inferscope GPU sampler', 'device-sampler'));
    if (!existsSync(capture.recordPath)) continue;
    const capture_id = `${execution_id}-record`;
    const zero = { realtime_ns: null, monotonic_ns: originNs };
    const context = { execution_id, capture_id, host: 'localhost', zero };
    const record = await recordImporter.load(capture.recordPath, writer, context);
    captures.push(of(capture_id, 'inferscope', recordImporter.name));
    issues.push(...record.issues);
    await writer.addArtifact(capture.recordPath, {
      kind: 'record',
      captureId: capture_id,
      name: `${execution_id}.jsonl`,
    });
  }
  for (const row of recording?.telemetry ?? [])
    writer.sink.append('telemetry', { ...row, t_ns: row.t_ns! - originNs });
  for (const row of recording?.memory ?? [])
    writer.sink.append('memory', { ...row, t_ns: row.t_ns! - originNs });
  await writer.addArtifact(Buffer.from(JSON.stringify(roofline, null, 2)), {
    kind: gpuRooflineArtifact,
    captureId: null,
    name: 'roofline-gpu.json',
  });
  const environment = describeEnvironment();
  const names = roofline.gpus.map(({ name }) => name);
  const title = `roofline · ${[...new Set(names)].join(', ')}${names.length > 1 ? ` × ${names.length}` : ''} · ${roofline.framework}`;
  const { id } = await writer.finish(
    {
      title: title.slice(0, 120),
      status: stopped ? 'interrupted' : 'complete',
      started_at: startedAt.toISOString(),
      ended_at: new Date().toISOString(),
      clock_pairs: [pair, clockPair()],
      command: redactCommand(['inferscope', ...process.argv.slice(2)], secretsOfEnvironment(process.env)),
      workload: null,
      hardware: { ...environment.hardware, ...gpuFacts(roofline.gpus) },
      software: {
        ...environment.software,
        torch: roofline.framework.replace(/^torch /, ''),
        nvidia_driver: roofline.driver,
      },
      executions,
      captures,
    },
    [...issues, ...environment.issues],
  );
  return id;
}

/** gpu_name and the rest of the first, gpu1_name of others that differ. */
function gpuFacts(gpus: MeasuredGpuRoofline['roofline']['gpus']): Record<string, Fact> {
  const [first] = gpus;
  const facts: Record<string, Fact> = {
    gpu_name: first?.name ?? null,
    gpu_pci_id: first?.pci_id ?? null,
    gpu_count: gpus.length,
    gpu_sm_count: first?.sm_count ?? null,
    gpu_memory_bytes: first?.memory_bytes ?? null,
    gpu_power_limit_w: first?.power_limit_w ?? null,
    gpu_compute_capability: first?.compute_capability ?? null,
  };
  for (const { index, name } of gpus) if (name !== first?.name) facts[`gpu${index}_name`] = name;
  return facts;
}

function clockPair() {
  return { monotonic_ns: String(monotonicNs()), realtime_ns: realtimeNs() };
}

import { existsSync } from 'node:fs';
import type { MeasuredGpuRoofline } from '../capture/roofline/measure-gpus.js';
import { type Fact } from '../hardware/environment.js';
import { recordImporter } from '../import/record.js';
import type { Issue } from '../model/document.js';
import type { Capture, Execution } from '../model/manifest.js';
import { toolVersion } from '../model/version.js';
import { type OpenRecording, openRecording } from '../record/record-session.js';
import { monotonicClock } from '../model/clock.js';

export interface RooflineCommandOptions {
  device?: 'cuda' | 'cpu';
  threads?: number;
  python?: string;
  fresh?: boolean;
  record?: boolean;
  name?: string;
  tag: string[];
  json?: boolean;
  quiet?: boolean;
}

export const openRooflineSession = ({ name, tag }: RooflineCommandOptions): Promise<OpenRecording> =>
  openRecording({
    label: 'gpus',
    kind: 'roofline',
    name: name ?? null,
    tags: tag,
    doing: 'save the roofline',
  });

/** Saves every case as a row of `microbenchmarks`, sensor samples, record files and the roofline. @returns the session's id */
export async function keepRooflineSession(
  recording: OpenRecording,
  { roofline, recording: measured }: MeasuredGpuRoofline,
  stopped: boolean,
): Promise<string> {
  const { files, originNs } = recording;
  const executions: Execution[] = [];
  const captures: Capture[] = [];
  const issues: Issue[] = [...roofline.issues];
  for (const capture of measured?.captures ?? []) {
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
      clock: monotonicClock,
    });
    for (const id of capture.sampled) captures.push(of(id, 'inferscope GPU sampler', 'device-sampler'));
    if (!existsSync(capture.recordPath)) continue;
    const capture_id = `${execution_id}-record`;
    const zero = { realtime_ns: null, monotonic_ns: originNs };
    const context = { execution_id, capture_id, host: 'localhost', zero };
    const record = await recordImporter.load(capture.recordPath, files, context);
    captures.push(of(capture_id, 'inferscope', recordImporter.name));
    issues.push(...record.issues);
    await files.addArtifact(capture.recordPath, {
      kind: 'record',
      captureId: capture_id,
      name: `${execution_id}.jsonl`,
    });
  }
  if (measured) recording.append(measured);
  await recording.keepJson('roofline-gpu', roofline);
  const names = roofline.gpus.map(({ name }) => name);
  const title = `roofline · ${[...new Set(names)].join(', ')}${names.length > 1 ? ` × ${names.length}` : ''} · ${roofline.framework}`;
  const { id } = await recording.finish({
    title,
    status: stopped ? 'interrupted' : 'complete',
    hardware: gpuFacts(roofline.gpus),
    software: { torch: roofline.framework.replace(/^torch /, ''), nvidia_driver: roofline.driver },
    executions,
    captures,
    issues,
  });
  return id;
}

/** gpu_name and others for the first GPU; gpu1_name for further GPUs that differ. */
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

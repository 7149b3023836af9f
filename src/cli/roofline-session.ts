import { existsSync } from 'node:fs';
import type { MeasuredGpuRoofline } from '../capture/roofline/measure-gpus.js';
import { type Fact } from '../hardware/environment.js';
import type { Issue } from '../model/document.js';
import type { Capture, Execution } from '../model/manifest.js';
import { saveRecord, sampledCapture } from '../record/save-record.js';
import { type Recorded, type Recording, recordSession, type SavedSession } from '../record/record-session.js';

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

/** Records a session of `measure`: every case as a row of `microbenchmarks`, sensor samples, record files and the roofline. */
export const recordRoofline = (
  { name, tag }: Pick<RooflineCommandOptions, 'name' | 'tag'>,
  measure: (recording: Recording) => Promise<{ gpu: MeasuredGpuRoofline; stopped: boolean }>,
): Promise<SavedSession & { gpu: MeasuredGpuRoofline }> =>
  recordSession(
    { label: 'gpus', kind: 'roofline', name: name ?? null, tags: tag, doing: 'save the roofline' },
    async (recording) => {
      const { gpu, stopped } = await measure(recording);
      return { ...(await saveRooflineRecording(recording, gpu, stopped)), result: { gpu } };
    },
  );

async function saveRooflineRecording(
  recording: Recording,
  { roofline, recording: measured }: MeasuredGpuRoofline,
  stopped: boolean,
): Promise<Recorded> {
  const { originNs } = recording;
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
    captures.push(...capture.sampled.map((id) => sampledCapture(id, execution_id)));
    if (!existsSync(capture.recordPath)) continue;
    const record = await saveRecord(recording, execution_id, capture.recordPath);
    captures.push(record.capture);
    issues.push(...record.record.issues);
  }
  if (measured) recording.append(measured);
  await recording.saveJson('roofline-gpu', roofline);
  const names = roofline.gpus.map(({ name }) => name);
  const title = `roofline · ${[...new Set(names)].join(', ')}${names.length > 1 ? ` × ${names.length}` : ''} · ${roofline.framework}`;
  return {
    title,
    status: stopped ? 'interrupted' : 'complete',
    hardware: gpuFacts(roofline.gpus),
    software: { torch: roofline.framework.replace(/^torch /, ''), nvidia_driver: roofline.driver },
    executions,
    captures,
    issues,
  };
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

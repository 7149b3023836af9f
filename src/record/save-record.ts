import { recordImporter, type RecordOutcome } from '../import/record.js';
import { monotonicClock } from '../model/clock.js';
import type { Issue } from '../model/document.js';
import type { Capture } from '../model/manifest.js';
import { toolVersion } from '../model/version.js';
import type { Recording } from './record-session.js';

/** Reads the record file of one execution into the tables, and saves it. */
export async function saveRecord(
  { files, originNs }: Pick<Recording, 'files' | 'originNs'>,
  execution_id: string,
  path: string,
): Promise<{ record: RecordOutcome; capture: Capture }> {
  const capture_id = `${execution_id}-record`;
  const zero = { realtime_ns: null, monotonic_ns: originNs };
  const record = await recordImporter.load(path, files, {
    execution_id,
    capture_id,
    host: 'localhost',
    zero,
  });
  await files.addArtifact(path, { kind: 'record', captureId: capture_id, name: `${execution_id}.jsonl` });
  return { record, capture: inferscopeCapture(capture_id, execution_id, 'inferscope', recordImporter.name) };
}

/** A capture that inferscope itself wrote or sampled. */
export const inferscopeCapture = (
  capture_id: string,
  execution_id: string,
  name: string,
  importer: string,
): Capture => ({
  capture_id,
  execution_id,
  tool: { name, version: toolVersion },
  importer,
  clock: monotonicClock,
});

/** A capture of samples of the host (`…-host`) or of GPUs. */
export const sampledCapture = (capture_id: string, execution_id: string): Capture =>
  capture_id.endsWith('-host')
    ? inferscopeCapture(capture_id, execution_id, 'inferscope host sampler', 'host-sampler')
    : inferscopeCapture(capture_id, execution_id, 'inferscope GPU sampler', 'device-sampler');

/** Several launches may report the same issue: report it once with its count. */
export function mergeIssues(issues: readonly Issue[]): Issue[] {
  const byText = new Map<string, Issue>();
  for (const issue of issues) {
    const key = `${issue.code} ${issue.text}`;
    const sameIssue = byText.get(key);
    if (sameIssue) sameIssue.count = (sameIssue.count ?? 1) + (issue.count ?? 1);
    else byText.set(key, { ...issue });
  }
  return [...byText.values()];
}

import { rooflineRows, type CachedRoofline } from '../capture/onnx/machine-roofline.js';
import type { Capture, Execution } from '../model/manifest.js';
import { toolVersion } from '../model/version.js';
import type { SessionFiles } from '../session/session-files.js';

/** Saves this machine's rooflines in the session, as the limit that analyses compare the embedded engine with. */
export async function saveRoofline(
  session: SessionFiles,
  { roofline }: CachedRoofline,
  imported: { executions: Execution[]; captures: Capture[] },
): Promise<void> {
  const keys = { execution_id: 'roofline', capture_id: 'roofline', host: 'localhost' };
  imported.executions.push({
    execution_id: 'roofline',
    purpose: 'microbenchmark',
    command: ['inferscope', 'roofline'],
    exit_code: 0,
    start_ns: null,
    end_ns: null,
  });
  imported.captures.push({
    capture_id: 'roofline',
    execution_id: 'roofline',
    tool: { name: 'inferscope', version: toolVersion },
    importer: 'roofline',
    clock: { name: 'none (durations only)', resolution_ns: 1, error_bound_ns: null },
  });
  for (const row of rooflineRows(roofline, keys)) session.sink.append('microbenchmarks', row);
  await session.addArtifact(Buffer.from(JSON.stringify(roofline, null, 2)), {
    kind: 'roofline',
    captureId: 'roofline',
    name: 'roofline.json',
  });
}

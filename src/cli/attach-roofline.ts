import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { z } from 'zod';
import { cachedGpuRoofline, type CachedGpuRoofline } from '../capture/roofline/cache.js';
import { cachedIssues } from '../capture/roofline/issues.js';
import type { Fact } from '../hardware/environment.js';
import type { Issue } from '../model/document.js';
import { gpuRooflineSchema } from '../model/documents/gpu-roofline.js';
import { InferscopeError, messageOf } from '../model/errors.js';
import { parseJson } from '../model/parse-json.js';
import type { SessionFiles } from '../session/session-files.js';
import { homeFolders } from '../session/home.js';

/**
 * Reads the roofline of another machine: the document that `inferscope roofline --json` printed there, a cached one, or
 * the artifact of a session.
 * @throws E_RECORD_FILE when it has no GPU roofline
 */
export async function readRooflineFile(path: string): Promise<CachedGpuRoofline> {
  const failure = (why: string, cause?: unknown) =>
    new InferscopeError(
      'E_RECORD_FILE',
      {
        what: `--roofline ${path} is not a GPU roofline`,
        why,
        fix: 'Measure one on the machine of the capture: inferscope roofline --json > roofline.json',
      },
      { cause },
    );
  let content: unknown;
  try {
    content = parseJson(await readFile(path, 'utf8'));
  } catch (error) {
    throw failure(messageOf(error), error);
  }
  const { data } = z
    .object({ data: z.looseObject({ gpu: z.unknown().optional() }).optional() })
    .catch({})
    .parse(content);
  const parsed = gpuRooflineSchema.safeParse(data?.gpu ?? data ?? content);
  if (!parsed.success) throw failure('It has no measured GPU: it is a CPU roofline or another document.');
  const ageS = Math.max(0, (Date.now() - Date.parse(parsed.data.measured_at)) / 1000);
  return { roofline: parsed.data, cached: true, ageS };
}

/**
 * Saves this machine's cached GPU roofline in a session captured on one of its GPUs, so that later answers compare
 * with what this device achieves. Measures nothing; does nothing without a cached roofline.
 * @param hardware of the session: `gpu_name` must name a GPU of the roofline
 * @param cached the roofline to save; looked up if omitted
 * @returns issues that make these rooflines doubtful
 */
export async function attachGpuRoofline(
  session: SessionFiles,
  hardware: Record<string, Fact>,
  cached?: CachedGpuRoofline | null,
): Promise<Issue[]> {
  const roofline = cached === undefined ? await cachedGpuRoofline(homeFolders().cache) : cached;
  return (roofline && (await attachRoofline(session, hardware, roofline))) ?? [];
}

/**
 * Saves the roofline of --roofline in the same way. One of another GPU than the captured one is not used, and an issue
 * reports that.
 */
export async function attachRooflineFile(
  session: SessionFiles,
  hardware: Record<string, Fact>,
  file: { path: string; roofline: CachedGpuRoofline },
): Promise<Issue[]> {
  const issues = await attachRoofline(session, hardware, file.roofline);
  if (issues) return issues;
  const name = hardware['gpu_name'];
  const measured = [...new Set(file.roofline.roofline.gpus.map((gpu) => gpu.name))].join(', ');
  const reason =
    typeof name === 'string'
      ? `the capture was made on ${name}. Measure that GPU: inferscope roofline --json > roofline.json on its machine.`
      : 'the capture names no GPU, so no roofs can be used. Import it together with a capture that names its GPU (nsys, PyTorch profiler, nvidia-smi).';
  const text = `--roofline ${basename(file.path)} was not used: it was measured on ${measured}, and ${reason}`;
  return [{ code: 'roofline_not_used', severity: 'warning', text }];
}

async function attachRoofline(
  session: SessionFiles,
  hardware: Record<string, Fact>,
  found: CachedGpuRoofline,
): Promise<Issue[] | null> {
  const name = hardware['gpu_name'];
  if (!found.roofline.gpus.some((gpu) => gpu.name === name)) return null;
  await session.addArtifact(Buffer.from(JSON.stringify(found.roofline, null, 2)), {
    kind: 'roofline-gpu',
    captureId: null,
    name: 'roofline-gpu.json',
  });
  return cachedIssues(found.roofline, true, found.ageS);
}

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
 * A roofline of another machine: the document that `inferscope roofline --json` printed there, or a cached one.
 * @throws E_RECORD_FILE when it holds no roofline of a GPU
 */
export async function readRooflineFile(path: string): Promise<CachedGpuRoofline> {
  const failure = (why: string, cause?: unknown) =>
    new InferscopeError(
      'E_RECORD_FILE',
      {
        what: `--roofline ${path} is no roofline of a GPU`,
        why,
        fix: 'Make one on the machine that was captured: inferscope roofline --json > roofline.json',
      },
      { cause },
    );
  let read: unknown;
  try {
    read = parseJson(await readFile(path, 'utf8'));
  } catch (error) {
    throw failure(messageOf(error), error);
  }
  const { data } = z
    .object({ data: z.looseObject({ gpu: z.unknown().optional() }).optional() })
    .catch({})
    .parse(read);
  const found = gpuRooflineSchema.safeParse(data?.gpu ?? data);
  if (!found.success) throw failure('It holds no measured GPU: a CPU’s roofline, or another document.');
  const ageS = Math.max(0, (Date.now() - Date.parse(found.data.measured_at)) / 1000);
  return { roofline: found.data, cached: true, ageS };
}

/**
 * Keeps the roofline that was measured before on this machine's GPUs in a session that was made on one of them, so that
 * every later answer divides by what this device does reach. Nothing is measured; without a cached one nothing is kept.
 * @param hardware facts of the session: `gpu_name` must be the name of a GPU that the roofline is of
 * @param cached the one to keep; looked up when left out
 * @returns what makes these roofs doubtful
 */
export async function attachGpuRoofline(
  session: SessionFiles,
  hardware: Record<string, Fact>,
  cached?: CachedGpuRoofline | null,
): Promise<Issue[]> {
  const found = cached === undefined ? await cachedGpuRoofline(homeFolders().cache) : cached;
  return (found && (await attached(session, hardware, found))) ?? [];
}

/** The same of a roofline that was typed: one that is not of the captured GPU is not used, and the session says so. */
export async function attachRooflineFile(
  session: SessionFiles,
  hardware: Record<string, Fact>,
  file: { path: string; roofline: CachedGpuRoofline },
): Promise<Issue[]> {
  const issues = await attached(session, hardware, file.roofline);
  if (issues) return issues;
  const name = hardware['gpu_name'];
  const measured = [...new Set(file.roofline.roofline.gpus.map((gpu) => gpu.name))].join(', ');
  const says =
    typeof name === 'string'
      ? `the capture is of ${name}. Measure that GPU: inferscope roofline --json > roofline.json on its machine.`
      : 'the capture names no GPU, so roofs of none can be used. Import it with a recording that names its GPU (nsys, PyTorch profiler, nvidia-smi).';
  const text = `--roofline ${basename(file.path)} was not used: it is of ${measured}, and ${says}`;
  return [{ code: 'roofline_not_used', severity: 'warning', text }];
}

async function attached(
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

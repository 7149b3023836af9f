import { gpuRooflineArtifact } from '../analyze/roofs.js';
import { cachedGpuRoofline, type CachedGpuRoofline } from '../capture/roofline/cache.js';
import { cachedIssues } from '../capture/roofline/issues.js';
import type { Fact } from '../hardware/environment.js';
import type { Issue } from '../model/document.js';
import type { SessionWriter } from '../session/create.js';
import { homeFolders } from '../session/home.js';

/**
 * Keeps the roofline that was measured before on this machine's GPUs in a session that was made on one of them, so that
 * every later answer divides by what this device does reach. Nothing is measured; without a cached one nothing is kept.
 * @param hardware facts of the session: `gpu_name` must be the name of a GPU that the roofline is of
 * @param cached the one to keep; looked up when left out
 * @returns what makes these roofs doubtful
 */
export async function attachGpuRoofline(
  session: SessionWriter,
  hardware: Record<string, Fact>,
  cached?: CachedGpuRoofline | null,
): Promise<Issue[]> {
  const name = hardware['gpu_name'];
  if (typeof name !== 'string') return [];
  const found = cached === undefined ? await cachedGpuRoofline(homeFolders().cache) : cached;
  if (!found?.roofline.gpus.some((gpu) => gpu.name === name)) return [];
  await session.addArtifact(Buffer.from(JSON.stringify(found.roofline, null, 2)), {
    kind: gpuRooflineArtifact,
    captureId: null,
    name: `${gpuRooflineArtifact}.json`,
  });
  return cachedIssues(found.roofline, true, found.ageS);
}

import {
  type CachedRoofline,
  measureMachineRoofline,
  type RooflineOptions,
} from '../capture/onnx/machine-roofline.js';
import { countProgress, type Progress } from './progress.js';
import { formatQuantity } from '../vocabulary/format.js';

/** This machine's rooflines, cached or measured; shows the estimated time left. @throws as measureMachineRoofline */
export async function rooflineWithProgress(
  progress: Progress,
  options: Omit<RooflineOptions, 'onProgress'>,
): Promise<CachedRoofline> {
  const cachedRoofline = await measureMachineRoofline({
    ...options,
    onProgress: countProgress(progress, "measuring this machine's roofline"),
  });
  if (!cachedRoofline.cached)
    progress.done("measured this machine's roofline", formatQuantity(cachedRoofline.roofline.seconds, 's'));
  return cachedRoofline;
}

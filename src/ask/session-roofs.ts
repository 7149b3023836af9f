import { readStoredRoofline } from '../facts/artifact.js';
import { deviceOf } from '../facts/device.js';
import { type GpuRoofs, gpuRoofs, readStoredGpuRoofline } from '../facts/roofs.js';
import type { MachineRoofline } from '../model/documents/roofline.js';
import type { Session } from '../session/open.js';

/** Rooflines of the session's device: of a GPU, or measured on its CPU; null if unknown. */
export async function sessionRoofs(
  session: Session,
): Promise<{ gpu: GpuRoofs | null; machine: MachineRoofline | null }> {
  const { manifest } = session;
  const { name } = deviceOf(manifest);
  const pciId = manifest.hardware['gpu_pci_id'];
  const gpu =
    name === null
      ? null
      : gpuRoofs(name, await readStoredGpuRoofline(session), {
          devices: manifest.workload?.tensor_parallel_size ?? 1,
          pciId: typeof pciId === 'string' ? pciId : null,
        });
  return { gpu, machine: gpu === null ? await readStoredRoofline(session) : null };
}

import { z } from 'zod';
import { gpuSheet } from '../../hardware/gpu-peaks.js';
import { sessionRoofs } from '../session-roofs.js';
import { askTool } from './tool.js';
import { sessionInput, whichSession } from './which-session.js';
import type { PeakDType } from '../../hardware/gpu-sheet.js';

const dtypes: readonly PeakDType[] = [
  'float32',
  'tfloat32',
  'float16',
  'bfloat16',
  'float8',
  'int8',
  'nvfp4',
  'mxfp4',
];

export const hardwareTool = askTool({
  name: 'hardware',
  description:
    "The device's peaks with their sources: FLOP/s by dtype (data sheet and measured), memory and L2 bandwidth, cost of a kernel launch; and what the session knows of the machine.",
  input: z.object({ ...sessionInput }),
  inputLine: () => null,
  async run({ session: id }, context) {
    const session = whichSession(context.sessions, id);
    const { gpu, machine } = await sessionRoofs(session);
    const sheet = gpu?.name ? gpuSheet(gpu.name) : null;
    const data = {
      facts: session.manifest.hardware,
      software: session.manifest.software,
      ...(gpu
        ? {
            gpu: gpu.name,
            gpus_together: gpu.devices,
            sheet_flops: Object.fromEntries(dtypes.map((dtype) => [dtype, gpu.mfuFlops(dtype)])),
            roof_flops: Object.fromEntries(dtypes.map((dtype) => [dtype, gpu.roofFlops(dtype)])),
            sheet_bandwidth: gpu.mbuBandwidth,
            roof_bandwidth: gpu.roofBandwidth,
            l2_bandwidth: gpu.l2Bandwidth,
            launch: gpu.launchNs,
            graph_node: gpu.graphNodeNs,
            bus_bandwidth: gpu.busBandwidth,
            memory_gb: sheet?.memoryGb ?? null,
            sm_count: sheet?.smCount ?? null,
          }
        : machine
          ? {
              cpu_compute: machine.compute.map(({ dtype, flops_per_s }) => ({ dtype, flops_per_s })),
              cpu_bandwidth: machine.bandwidth.map(({ level, working_set_bytes, bytes_per_s }) => ({
                level,
                working_set_bytes,
                bytes_per_s,
              })),
            }
          : { note: 'the session has no device with known peaks' }),
    };
    return { data, rows: Object.keys(data).length };
  },
});

import { z } from 'zod';
import { issueSchema } from '../document.js';
import { figureSchema } from '../figure.js';

/** How a value came about, and what the GPU's sensors said meanwhile. */
const measurement = {
  /** KernelCase.case; the row of table `microbenchmarks` has the same case_id. */
  case: z.string(),
  /** events: between two events of the device. graph: replays of a graph of many. host: a clock of the CPU. */
  method: z.enum(['events', 'graph', 'host']),
  runs: z.number().int(),
  median_ns: z.number(),
  /** Standard deviation of the runs over their median. */
  sd_share: z.number(),
  /** Mean over the samples within the timed part; null where none fell into it or no driver tells. */
  sm_clock_mhz: z.number().nullable(),
  power_w: z.number().nullable(),
  /** Reasons that held the clocks down meanwhile: sw_power_cap, hw_thermal_slowdown, … */
  throttled_by: z.array(z.string()),
};

/** Fastest dense matrix multiplication found for a dtype. */
export const gpuComputePeakSchema = z.object({
  ...measurement,
  /** dtype computed in; tfloat32: float32 matrices on tensor cores. int8: integer operations a second. */
  dtype: z.string(),
  flops_per_s: z.number(),
  m: z.number().int(),
  n: z.number().int(),
  k: z.number().int(),
  /** Dense data-sheet peak, with its document; missing where no sheet states it. */
  sheet: figureSchema,
  /** flops_per_s / sheet. */
  of_sheet: figureSchema,
  /** flops_per_s over the measured bandwidth of memory: FLOP a byte at which both limit. */
  ridge_flop_per_byte: z.number().nullable(),
});

export const gpuBandwidthSchema = z.object({
  ...measurement,
  /** copy: read + write. triad: two reads + write. */
  pattern: z.enum(['copy', 'read', 'write', 'triad']),
  /** Bytes read and written a second, together. */
  bytes_per_s: z.number(),
  array_bytes: z.number(),
  sheet: figureSchema,
  of_sheet: figureSchema,
});

export const gpuLatencySchema = z.object({ ...measurement, ns: z.number() });

export const hostLinkSchema = z.object({
  ...measurement,
  direction: z.enum(['host-to-device', 'device-to-host']),
  pinned: z.boolean(),
  bytes: z.number(),
  bytes_per_s: z.number(),
  /** One direction of the link as the data sheet names it. */
  sheet: figureSchema,
  of_sheet: figureSchema,
});

/** Every size of the search, so that the choice can be seen. */
export const triedGemmSchema = z.object({
  dtype: z.string(),
  m: z.number().int(),
  n: z.number().int(),
  k: z.number().int(),
  /** Null when it was not measured. */
  flops_per_s: z.number().nullable(),
  outcome: z.string(),
});

export const gpuRoofsSchema = z.object({
  /** As PyTorch counts: cuda:<index>. */
  index: z.number().int(),
  name: z.string(),
  /** vendor:device, e.g. 10de:2335: tells products of one name apart. Null where the bus is hidden. */
  pci_id: z.string().nullable().default(null),
  compute_capability: z.string().nullable(),
  sm_count: z.number().nullable(),
  l2_bytes: z.number().nullable(),
  memory_bytes: z.number().nullable(),
  power_limit_w: z.number().nullable(),
  /** Profile of a MIG instance: 1g.10gb. The sheet's figures are then its share of the whole GPU's. */
  mig_profile: z.string().nullable(),
  /** Document and year, and what was scaled; null for a GPU that no sheet is known of. */
  sheet: z.string().nullable(),
  /** compared: another GPU of its name was measured as a whole, of this one only what shows that it is as fast. */
  scope: z.enum(['full', 'compared']),
  compute: z.array(gpuComputePeakSchema),
  bandwidth: z.array(gpuBandwidthSchema),
  /** Fastest of copy, read and triad: the memory's roof. */
  memory_bytes_per_s: z.number().nullable(),
  l2: gpuBandwidthSchema.omit({ pattern: true, sheet: true, of_sheet: true }).nullable(),
  /** What the host needs to hand an empty kernel to the driver, through PyTorch: what eager programs pay a kernel. */
  launch: gpuLatencySchema.nullable(),
  /** From one empty kernel to the next on the device when many are waiting. */
  launch_device: gpuLatencySchema.nullable(),
  /** From the call until the host knows that the kernel is done. */
  launch_round_trip: gpuLatencySchema.nullable(),
  /** From one empty kernel to the next in a replayed CUDA graph. */
  graph_node: gpuLatencySchema.nullable(),
  host_links: z.array(hostLinkSchema),
  tried: z.array(triedGemmSchema),
});

export const collectivePointSchema = z.object({
  ...measurement,
  bytes: z.number(),
  /** bytes / time. */
  algorithm_bytes_per_s: z.number(),
  /** × 2(n − 1)/n: what each GPU's link carries (nccl-tests, PERFORMANCE.md). */
  bus_bytes_per_s: z.number(),
});

export const collectivesSchema = z.object({
  operation: z.literal('all-reduce'),
  ranks: z.number().int(),
  /** Ascending by size. */
  points: z.array(collectivePointSchema),
  /** Time of the smallest size. */
  latency_ns: z.number().nullable(),
  bus_bytes_per_s: z.number().nullable(),
  /** NVLink of one GPU, one direction. */
  sheet: figureSchema,
  of_sheet: figureSchema,
});

/** Measured roofs of a machine's GPUs. */
export const gpuRooflineSchema = z.object({
  /** torch 2.11.0 (CUDA 13.0) */
  framework: z.string(),
  driver: z.string().nullable(),
  measured_at: z.string(),
  seconds: z.number(),
  gpus: z.array(gpuRoofsSchema),
  /** Null with one GPU, or where they could not be measured: the issues say why. */
  collectives: collectivesSchema.nullable(),
  /** What makes figures doubtful: throttling, other processes, cases that failed. */
  issues: z.array(issueSchema),
});

export type GpuRoofline = z.infer<typeof gpuRooflineSchema>;
export type MeasuredGpu = z.infer<typeof gpuRoofsSchema>;
export type GpuComputePeak = z.infer<typeof gpuComputePeakSchema>;
export type GpuBandwidth = z.infer<typeof gpuBandwidthSchema>;
export type HostLink = z.infer<typeof hostLinkSchema>;
export type Collectives = z.infer<typeof collectivesSchema>;

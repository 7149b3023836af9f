import { z } from 'zod';
import { issueSchema } from '../document.js';
import { figureSchema } from '../figure.js';

/** How a value was measured, and what the GPU's sensors reported during the measurement. */
const measurement = {
  /** KernelCase.case; the row of table `microbenchmarks` has the same case_id. */
  case: z.string(),
  /** events: between two events of the device. graph: replays of a graph with many kernels. host: by a clock of the CPU. */
  method: z.enum(['events', 'graph', 'host']),
  runs: z.number().int(),
  median_ns: z.number(),
  /** Standard deviation of the runs relative to their median. */
  sd_share: z.number(),
  /** Mean over the samples within the timed part; null if there are none or the driver does not report it. */
  sm_clock_mhz: z.number().nullable(),
  power_w: z.number().nullable(),
  /** Throttle reasons during the measurement: sw_power_cap, hw_thermal_slowdown, … */
  throttled_by: z.array(z.string()),
};

/** Fastest dense matrix multiplication found for a dtype. */
const gpuComputePeakSchema = z.object({
  ...measurement,
  dtype: z
    .string()
    .describe(
      'dtype computed in; tfloat32: float32 matrices on tensor cores. int8: integer operations per second.',
    ),
  flops_per_s: z.number(),
  m: z.number().int(),
  n: z.number().int(),
  k: z.number().int(),
  sheet: figureSchema.describe('Dense data-sheet peak, with its document; missing where no sheet states it.'),
  of_sheet: figureSchema.describe('flops_per_s / sheet.'),
  ridge_flop_per_byte: z
    .number()
    .nullable()
    .describe('flops_per_s over the measured bandwidth of memory: FLOP per byte at which both limit.'),
});

export const bandwidthPatterns = ['copy', 'read', 'write', 'triad'] as const;

const gpuBandwidthSchema = z.object({
  ...measurement,
  pattern: z.enum(bandwidthPatterns).describe('copy: read + write. triad: two reads + write.'),
  bytes_per_s: z.number().describe('Bytes read and written per second, together.'),
  array_bytes: z.number(),
  sheet: figureSchema,
  of_sheet: figureSchema,
});

const gpuLatencySchema = z.object({ ...measurement, ns: z.number() });

const hostLinkSchema = z.object({
  ...measurement,
  direction: z.enum(['host-to-device', 'device-to-host']),
  pinned: z.boolean(),
  bytes: z.number(),
  bytes_per_s: z.number(),
  sheet: figureSchema.describe('One direction of the link as the data sheet names it.'),
  of_sheet: figureSchema,
});

/** Every size that the search tried, so that the choice can be checked. */
const triedGemmSchema = z.object({
  dtype: z.string(),
  m: z.number().int(),
  n: z.number().int(),
  k: z.number().int(),
  flops_per_s: z.number().nullable().describe('Null when it was not measured.'),
  outcome: z.string(),
});

const gpuRoofsSchema = z.object({
  index: z.number().int().describe('As PyTorch counts: cuda:<index>.'),
  name: z.string(),
  pci_id: z
    .string()
    .nullable()
    .default(null)
    .describe(
      'vendor:device, e.g. 10de:2335: distinguishes products of one name. Null where the PCI bus is not visible.',
    ),
  compute_capability: z.string().nullable(),
  sm_count: z.number().nullable(),
  l2_bytes: z.number().nullable(),
  memory_bytes: z.number().nullable(),
  power_limit_w: z.number().nullable(),
  mig_profile: z
    .string()
    .nullable()
    .describe(
      "Profile of a MIG instance: 1g.10gb. The sheet's figures are then its share of the whole GPU's.",
    ),
  sheet: z
    .string()
    .nullable()
    .describe('Document and year, and what was scaled; null for a GPU without a known data sheet.'),
  scope: z
    .enum(['full', 'compared'])
    .describe(
      'compared: another GPU of the same name was measured in full, and this one only enough to show that it is as fast.',
    ),
  compute: z.array(gpuComputePeakSchema),
  bandwidth: z.array(gpuBandwidthSchema),
  memory_bytes_per_s: z.number().nullable().describe("Fastest of copy, read and triad: the memory's roof."),
  l2: gpuBandwidthSchema.omit({ pattern: true, sheet: true, of_sheet: true }).nullable(),
  launch: gpuLatencySchema
    .nullable()
    .describe(
      'Host time to launch an empty kernel through PyTorch: the least cost per kernel of eager programs.',
    ),
  launch_device: gpuLatencySchema
    .nullable()
    .describe('From one empty kernel to the next on the device when many are waiting.'),
  launch_round_trip: gpuLatencySchema
    .nullable()
    .describe('From the call until the host knows that the kernel is done.'),
  graph_node: gpuLatencySchema
    .nullable()
    .describe('From one empty kernel to the next in a replayed CUDA graph.'),
  host_links: z.array(hostLinkSchema),
  tried: z.array(triedGemmSchema),
});

const collectivePointSchema = z.object({
  ...measurement,
  bytes: z.number(),
  algorithm_bytes_per_s: z.number().describe('bytes / time.'),
  bus_bytes_per_s: z
    .number()
    .describe("× 2(n − 1)/n: what each GPU's link carries (nccl-tests, PERFORMANCE.md)."),
});

const collectivesSchema = z.object({
  operation: z.literal('all-reduce'),
  ranks: z.number().int(),
  points: z.array(collectivePointSchema).describe('Ascending by size.'),
  latency_ns: z.number().nullable().describe('Time of the smallest size.'),
  bus_bytes_per_s: z.number().nullable(),
  sheet: figureSchema.describe('NVLink of one GPU, one direction.'),
  of_sheet: figureSchema,
});

/** Measured rooflines of a machine's GPUs. */
export const gpuRooflineSchema = z.object({
  framework: z.string().describe('torch 2.11.0 (CUDA 13.0)'),
  driver: z.string().nullable(),
  measured_at: z.string(),
  seconds: z.number().describe('Duration of the measurement, s.'),
  gpus: z.array(gpuRoofsSchema),
  collectives: collectivesSchema
    .nullable()
    .describe('Null with one GPU, or where they could not be measured: the issues say why.'),
  issues: z
    .array(issueSchema)
    .describe('What makes figures doubtful: throttling, other processes, cases that failed.'),
});

export type GpuRoofline = z.infer<typeof gpuRooflineSchema>;
export type MeasuredGpu = z.infer<typeof gpuRoofsSchema>;
export type GpuComputePeak = z.infer<typeof gpuComputePeakSchema>;
export type GpuBandwidth = z.infer<typeof gpuBandwidthSchema>;
export type HostLink = z.infer<typeof hostLinkSchema>;
export type Collectives = z.infer<typeof collectivesSchema>;

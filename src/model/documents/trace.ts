import { z } from 'zod';
import { documentSchema, issueSchema } from '../document.js';
import { figureSchema } from '../figure.js';
import { workloadSchema } from '../manifest.js';
import { driftSchema } from './trace-drift.js';
import { idleSchema, overlapSchema } from './trace-idle.js';
import {
  apiCallSchema,
  phaseClassesSchema,
  shortKernelsSchema,
  traceCopySchema,
  traceKernelSchema,
} from './trace-kernels.js';
import { launchesSchema } from './trace-launches.js';
import { traceMemorySchema } from './trace-memory.js';
import { operatorsSchema } from './trace-operators.js';
import { tracePhaseSchema } from './trace-phases.js';
import { traceDeviceSchema, traceSourceSchema } from './trace-source.js';
import { traceTelemetrySchema, traceTimelineSchema } from './trace-timeline.js';
import { utilizationSchema } from './utilization.js';
import type { FigureRow } from '../figure-rows.js';
import { sessionIdentitySchema } from './session-identity.js';

export type { Idle, Overlap } from './trace-idle.js';
export type { PhaseKind } from './trace-phase.js';
export type { ApiCall, PhaseClasses, ShortKernels, TraceCopy, TraceKernel } from './trace-kernels.js';
export type { LaunchKernel, Launches } from './trace-launches.js';
export type { Operator, Operators } from './trace-operators.js';
export type { PhaseInstance, TracePhase } from './trace-phases.js';
export type { TraceDevice, TraceSource } from './trace-source.js';
export type { Spread } from './trace-spread.js';

const count = z.number().int();

const attributionSchema = z.object({
  methods: z
    .array(z.object({ method: z.string().nullable(), kernels: count, kernel_ns: z.number() }))
    .describe('By how the stage of a kernel was found; `method` null: in no range.'),
  orphans: count.describe('Kernels without the API call that launched them.'),
  classified_share: figureSchema.describe('Share of kernel time with a class other than `other`.'),
  losses: z.array(issueSchema).describe('The issues of the session that affect this document.'),
});

const traceResultSchema = z.object({
  session: sessionIdentitySchema,
  workload: workloadSchema.nullable(),
  source: traceSourceSchema,
  devices: z.array(traceDeviceSchema),
  phases: z
    .array(tracePhaseSchema)
    .describe('In the order load, warmup, prefill, decode, mixed, training, sampling, other; then outside.'),
  kernels: z
    .array(traceKernelSchema)
    .describe('By total time, at most 200; `kernels_total` counts them all.'),
  kernels_total: z.object({ names: count, count, total_ns: z.number() }),
  classes: z.array(phaseClassesSchema).describe('First the whole capture, then by stage.'),
  copies: z.array(traceCopySchema),
  api_calls: z.array(apiCallSchema),
  launches: launchesSchema,
  idle: idleSchema,
  overlap: overlapSchema,
  operators: operatorsSchema.nullable().describe('Null where the capture has no operators (nsys).'),
  short_kernels: shortKernelsSchema,
  attribution: attributionSchema,
  timeline: traceTimelineSchema.nullable(),
  telemetry: traceTelemetrySchema.nullable(),
  environment: z.array(z.object({ id: z.string(), label: z.string(), value: z.string() })),
  utilization: utilizationSchema
    .nullable()
    .optional()
    .describe('MFU and MBU by stage; null where there is no prefill and no decode step.'),
  memory: traceMemorySchema
    .nullable()
    .optional()
    .describe("What the framework's allocator held; null where no capture recorded it."),
  drift: z.array(driftSchema).optional().describe('By kind of step.'),
});

export const traceVersion = '3.0';
export const traceDocumentSchema = documentSchema('trace', traceVersion, traceResultSchema);

export type TraceResult = z.infer<typeof traceResultSchema>;
export type TraceAttribution = z.infer<typeof attributionSchema>;
export type TraceTimeline = z.infer<typeof traceTimelineSchema>;
export type TraceTelemetry = z.infer<typeof traceTelemetrySchema>;

export const traceFigures = ({ phases }: TraceResult): FigureRow[] =>
  phases.map(({ kind, wall, clean_ms, idle_share, kernels, launches }) => ({
    label: kind,
    values: { wall_ms: clean_ms.value ?? wall.mean_ns / 1e6, idle_share, kernels, launches },
  }));

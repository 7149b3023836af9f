import { z } from 'zod';
import { opClasses } from '../classes.js';
import { phaseKindSchema } from './trace-phase.js';

const opClass = z.enum(opClasses);
const count = z.number().int();

/** One prefill and a few decode steps in detail, and the whole capture as a density. Limited in size. */
export const traceTimelineSchema = z.object({
  origin_ns: z.number().describe("ns since the session's start; all times below are relative to it."),
  dur_ns: z.number(),
  dropped: count.describe('Events left out to limit the size.'),
  stages: z.array(
    z.object({
      label: z.string(),
      kind: phaseKindSchema,
      depth: count,
      start_ns: z.number(),
      dur_ns: z.number(),
    }),
  ),
  lanes: z
    .array(z.object({ label: z.string(), what: z.enum(['api', 'kernels', 'copies', 'idle', 'operators']) }))
    .describe('operators: of a program that uses no GPU, one lane per thread and depth of nesting.'),
  names: z.array(z.string()).describe('Texts that events name by index; kernels by full name.'),
  events: z.array(
    z.object({
      lane: count,
      name: count,
      class: opClass.nullable(),
      start_ns: z.number(),
      dur_ns: z.number(),
    }),
  ),
  density: z.object({
    start_ns: z.number(),
    bin_ns: z.number(),
    classes: z
      .array(z.object({ class: z.union([opClass, z.literal('copies')]), share: z.array(z.number()) }))
      .describe('Share of each bin that the class took, 0 to 1.'),
    phases: z.array(z.object({ kind: phaseKindSchema, start_ns: z.number(), dur_ns: z.number() })),
  }),
});

export const traceTelemetrySchema = z.object({
  series: z.array(
    z.object({
      scope: z.string(),
      metric: z.string(),
      unit: z.string(),
      mean: z.number(),
      min: z.number(),
      max: z.number(),
      phases: z.array(z.object({ kind: phaseKindSchema, mean: z.number(), samples: count })),
      points: z
        .array(z.tuple([z.number(), z.number()]))
        .describe("[ns since the session's start, value], at most 600: means of equal spans."),
    }),
  ),
  events: z
    .array(
      z.object({
        kind: z.enum(['throttling', 'power_cap', 'clock_drop']),
        scope: z.string(),
        start_ns: z.number(),
        end_ns: z.number(),
        phases: z.array(phaseKindSchema),
        text: z.string(),
      }),
    )
    .describe('Throttling, power caps and clock drops, with the stages they hit.'),
});

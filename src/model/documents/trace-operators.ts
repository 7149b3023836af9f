import { z } from 'zod';
import { phaseKindSchema } from './trace-phase.js';

const count = z.number().int();

export const operatorVerdictSchema = z.enum(['scheduling', 'kernels', 'allocation', 'cpu']);

export const operatorSchema = z.object({
  name: z.string(),
  op_type: z.string().nullable(),
  count,
  /** With what it calls. */
  cpu_ns: z.number(),
  self_cpu_ns: z.number(),
  /** Kernels and copies launched by it itself. */
  device_ns: z.number(),
  kernels: count,
  /** Device memory its own code allocated; null where not recorded. */
  allocated_bytes: z.number().nullable(),
  /** API calls in its own code that allocate or free device memory. */
  allocation_ns: z.number(),
  /** Most frequent first. */
  shapes: z.array(z.object({ input_shapes: z.string(), count, device_ns: z.number() })),
  /** Enclosing operators and Python frames of its costliest call, outermost first. */
  call_path: z.array(z.string()),
  /** What costs: host time of its own against time on the device against allocator calls; cpu where no GPU was used. */
  verdict: operatorVerdictSchema,
});

export const operatorsSchema = z.object({
  phase: phaseKindSchema.nullable(),
  /** The costliest names. */
  rows: z.array(operatorSchema),
  /** Of every name of the phase, those that rows leave out as well. Since 1.4. */
  self_cpu_total_ns: z.number().optional(),
  verdict: operatorVerdictSchema.nullable(),
  text: z.string(),
});

export type Operator = z.infer<typeof operatorSchema>;
export type Operators = z.infer<typeof operatorsSchema>;

import { z } from 'zod';
import { phaseKindSchema } from './trace-phase.js';

const count = z.number().int();

const operatorVerdictSchema = z.enum(['scheduling', 'kernels', 'allocation', 'cpu']);

const operatorSchema = z.object({
  name: z.string(),
  op_type: z.string().nullable(),
  count,
  cpu_ns: z.number().describe('With what it calls.'),
  self_cpu_ns: z.number(),
  device_ns: z.number().describe('Kernels and copies launched by it itself.'),
  kernels: count,
  allocated_bytes: z
    .number()
    .nullable()
    .describe('Device memory its own code allocated; null where not recorded.'),
  allocation_ns: z.number().describe('API calls in its own code that allocate or free device memory.'),
  shapes: z
    .array(z.object({ input_shapes: z.string(), count, device_ns: z.number() }))
    .describe('Most frequent first.'),
  call_path: z
    .array(z.string())
    .describe('Enclosing operators and Python frames of its costliest call, outermost first.'),
  verdict: operatorVerdictSchema.describe(
    'What costs: its own host time against time on the device against allocator calls; cpu where no GPU was used.',
  ),
});

export const operatorsSchema = z.object({
  phase: phaseKindSchema.nullable(),
  rows: z.array(operatorSchema).describe('The costliest names.'),
  self_cpu_total_ns: z
    .number()
    .optional()
    .describe('All names of the stage together, including those that rows leave out. Since 1.4.'),
  verdict: operatorVerdictSchema.nullable(),
  text: z.string(),
});

export type Operator = z.infer<typeof operatorSchema>;
export type Operators = z.infer<typeof operatorsSchema>;

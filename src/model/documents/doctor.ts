import { z } from 'zod';
import { documentSchema } from '../document.js';

export const doctorGroups = ['machine', 'nvidia', 'python', 'containers', 'amd', 'jobs'] as const;

const doctorRowSchema = z.object({
  id: z.string().describe('Stable name, the one `--require` takes.'),
  group: z.enum(doctorGroups),
  label: z.string(),
  status: z
    .enum(['ok', 'warning', 'missing', 'not_applicable'])
    .describe(
      'ok: usable. warning: usable with the restriction in `found`. missing: not there or not working. not_applicable: this machine has no use for it (a tool for NVIDIA GPUs on a machine without one).',
    ),
  found: z.string().describe('What was found, or why nothing was.'),
  fix: z.string().nullable().describe('What to type or change; null when the status is ok.'),
  required: z.boolean().describe('The exit code is 1 while a required row is not ok.'),
});

/** What this machine can do, derived from the rows. */
const capabilitySchema = z.object({
  id: z.enum(['embedded_engine', 'nvidia_capture', 'pytorch', 'amd']),
  label: z.string(),
  usable: z.boolean(),
  text: z.string().describe('"yes", or in a few words what there is and what is lacking.'),
});

export const doctorDataSchema = z.object({
  ok: z.boolean().describe('Every required row is ok.'),
  summary: z.string().describe('The capabilities in one line.'),
  capabilities: z.array(capabilitySchema),
  rows: z.array(doctorRowSchema),
});

export const doctorVersion = '1.1';
export const doctorSchema = documentSchema('doctor', doctorVersion, doctorDataSchema);

export type DoctorRow = z.infer<typeof doctorRowSchema>;
export type DoctorGroup = DoctorRow['group'];
export type Capability = z.infer<typeof capabilitySchema>;
export type DoctorData = z.infer<typeof doctorDataSchema>;

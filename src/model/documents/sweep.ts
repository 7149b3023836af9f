import { z } from 'zod';
import { documentSchema, issueSchema } from '../document.js';

/**
 * A sweep: its plan, and the outcome and figures of each run. The journal file is this document, rewritten after every run, so that a
 * killed sweep continues where it stopped.
 */
const sweepOutcomes = [
  /** Not started yet. */
  'pending',
  'running',
  'measured',
  /** Failed after some measurements, which are saved. */
  'partial',
  'failed',
  'timed_out',
  /** The machine prevented it (disk full): `--resume` tries again. */
  'not_run',
  'interrupted',
] as const;

const value = z.union([z.string(), z.number(), z.null()]);

const sweepFailureSchema = z.object({
  code: z.string(),
  what: z.string(),
  why: z.string(),
  fix: z.string(),
  infrastructure: z
    .boolean()
    .describe('A fault of the machine around it, not of the configuration: worth another try.'),
});

const sweepRunSchema = z.object({
  number: z.number().int().describe('From 1, in the order of execution.'),
  key: z
    .string()
    .describe(
      'Hash of the command without its output: the same configuration has the same key in every sweep.',
    ),
  label: z.string(),
  arguments: z.array(z.string()).describe('Arguments after `inferscope`.'),
  parameters: z
    .record(z.string(), value)
    .describe('What was varied and what was constant, by the names of the YAML file.'),
  output: z
    .string()
    .nullable()
    .describe(
      "File or folder of its results, relative to the sweep's folder; null where the command writes none.",
    ),
  outcome: z.enum(sweepOutcomes),
  attempts: z.number().int(),
  started_at: z.string().nullable(),
  duration_s: z.number().nullable(),
  exit_code: z.number().int().nullable(),
  pid: z.number().int().nullable().describe('Id of the process while it runs.'),
  job: z
    .string()
    .nullable()
    .default(null)
    .describe('Slurm task that executes it, as squeue prints it; null on this machine.'),
  failure: sweepFailureSchema.nullable(),
  session_id: z.string().nullable(),
  log: z.string().nullable().describe("Its stderr, relative to the sweep's folder."),
  figures: z
    .array(z.object({ label: z.string().nullable(), values: z.record(z.string(), z.number().nullable()) }))
    .describe('Main figures, units in their names; a benchmark has one entry per point.'),
  issues: z.array(issueSchema),
  expected: z.object({
    seconds: z.number().describe('Expected duration, s.'),
    basis: z.string().describe('What the expected duration is based on.'),
    memory_bytes: z
      .number()
      .nullable()
      .describe("On one device; null where the model's dimensions are not known before."),
    capacity_bytes: z.number().nullable(),
    fits: z.boolean().nullable().describe('Null: not known.'),
    why: z.string(),
  }),
});

const sweepSchema = z.object({
  name: z.string().nullable(),
  stamp: z.string().describe('UTC, as in the names of its files: 20261121-134502.'),
  kind: z.enum(['memory', 'grid']),
  status: z
    .enum(['planned', 'running', 'complete', 'interrupted'])
    .describe(
      'planned: a dry run. interrupted: stopped by the user, or by a failure that affects other runs.',
    ),
  started_at: z.string(),
  ended_at: z.string().nullable(),
  command: z.array(z.string()).describe('As typed.'),
  working_directory: z.string().describe('Relative paths of the runs start here.'),
  varied: z.array(z.string()).describe('Parameters that take more than one value.'),
  config: z.object({ path: z.string(), sha256: z.string() }).nullable(),
  protocol: z.object({
    timeout_s: z.number().nullable(),
    retries: z.number().int(),
    min_free_bytes: z.number(),
  }),
  process: z
    .object({ host: z.string(), pid: z.number().int() })
    .nullable()
    .describe('Who runs it: another process must not run it at the same time.'),
  runs: z.array(sweepRunSchema),
});

export const sweepVersion = '1.1';
export const sweepDocumentSchema = documentSchema('sweep', sweepVersion, sweepSchema);

export type SweepResult = z.infer<typeof sweepSchema>;
export type SweepRun = z.infer<typeof sweepRunSchema>;
export type SweepFigures = SweepRun['figures'][number];
export type SweepFailure = z.infer<typeof sweepFailureSchema>;
export type SweepOutcome = (typeof sweepOutcomes)[number];
export type SweepValue = z.infer<typeof value>;

import { contextSchema, givenParts } from './context.js';
import { z } from 'zod';
import { documentSchema } from './document.js';
import { modelFactsSchema, modelTensorSchema } from './model-facts.js';
import { subjects } from './subjects.js';

/** sha256 and size of a saved file; `path` is relative to the session folder, with forward slashes. */
const savedFileSchema = z.object({
  path: z.string(),
  bytes: z.number().int(),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
});

const tableFileSchema = savedFileSchema.extend({
  capture_id: z.string(),
  rows: z.number().int(),
});

const artifactSchema = savedFileSchema.extend({
  capture_id: z.string().nullable(),
  kind: z.string().describe('What it is: record, ort-trace, log, config, stdout, …'),
});

const executionSchema = z.object({
  execution_id: z.string(),
  purpose: z
    .enum(['clean', 'profiled', 'counters', 'gemm-log', 'imported', 'microbenchmark'])
    .describe(
      'clean: times are taken from it. profiled: attribution is taken from it. The others name their tool.',
    ),
  command: z.array(z.string()),
  tool_command: z
    .array(z.string())
    .optional()
    .describe('Command line of the profiler that ran it, redacted; missing without one.'),
  exit_code: z.number().int().nullable(),
  start_ns: z.number().nullable().describe('Null if the execution was not timed as a whole.'),
  end_ns: z.number().nullable(),
});

const captureSchema = z.object({
  capture_id: z.string(),
  execution_id: z.string(),
  tool: z.object({ name: z.string(), version: z.string().nullable() }),
  importer: z.string(),
  clock: z
    .object({
      name: z.string(),
      resolution_ns: z.number(),
      error_bound_ns: z.number().nullable(),
    })
    .describe(
      "Clock of the source's times, and the largest error of their conversion to the session's; null where it is not known.",
    ),
});

/** A fact about the machine or the software; null means it could not be read, with the reason in `issues`. */
const fact = z.union([z.string(), z.number(), z.boolean(), z.null()]);

export const workloadSchema = z.object({
  model: z
    .object({
      name: z.string(),
      /** config.json as used by the workload. */
      config: z.record(z.string(), z.unknown()),
      dtype: z.string(),
      quantization: z.string().nullable(),
      weights: z.enum(['random', 'trained', 'unknown']),
      num_parameters: z.number().nullable(),
      weight_bytes: z.number().nullable(),
      facts: modelFactsSchema
        .optional()
        .describe('Facts about the model that were read while the program ran.'),
      tensors: z.array(modelTensorSchema).optional(),
    })
    .nullable(),
  engine: z.object({
    name: z.string(),
    version: z.string().nullable(),
    options: z.record(z.string(), fact),
  }),
  device: z.string(),
  threads: z.number().int().nullable(),
  batch_size: z.number().int().nullable(),
  input_len: z.number().int().nullable(),
  output_len: z.number().int().nullable(),
  tensor_parallel_size: z.number().int().default(1),
  given_by_user: z
    .array(z.enum(givenParts))
    .optional()
    .describe('Parts that the user gave because nothing recorded them: in documents, never in session.json.'),
});

export const manifestDataSchema = z.object({
  id: z.string(),
  kind: z.string().describe('Command that made it: profile, run, import, roofline, bench, …'),
  subjects: z
    .array(z.enum(subjects))
    .default([])
    .describe(
      'What the session has, the main subject first. Files before 1.1 lack it; it is added when they are read.',
    ),
  title: z.string().describe('One line for lists: model, dtype, engine, sizes.'),
  status: z.enum(['complete', 'interrupted', 'failed']),
  started_at: z.string().describe("Wall clock of the session's time 0, ISO 8601 with offset Z."),
  ended_at: z.string(),
  clock_pairs: z
    .array(z.object({ monotonic_ns: z.string(), realtime_ns: z.string() }))
    .describe('Pairs of CLOCK_MONOTONIC and CLOCK_REALTIME (ns, decimal strings) at start and end.'),
  command: z.array(z.string()),
  workload: workloadSchema.nullable(),
  hardware: z.record(z.string(), fact),
  software: z.record(z.string(), fact),
  executions: z.array(executionSchema),
  captures: z.array(captureSchema),
  tables: z.record(z.string(), z.array(tableFileSchema)),
  artifacts: z.array(artifactSchema),
});

export const manifestVersion = '1.1';
export const manifestSchema = documentSchema('session', manifestVersion, manifestDataSchema);

export type SavedFile = z.infer<typeof savedFileSchema>;
export type TableFile = z.infer<typeof tableFileSchema>;
export type Artifact = z.infer<typeof artifactSchema>;
export type Execution = z.infer<typeof executionSchema>;
export type Capture = z.infer<typeof captureSchema>;
export type Workload = z.infer<typeof workloadSchema>;
export type ManifestData = z.infer<typeof manifestDataSchema>;

/** Data added by users afterwards: without a checksum, replaced atomically. */
export const userDataSchema = z.object({
  name: z.string().nullable(),
  tags: z.array(z.string()),
  notes: z.array(z.object({ at: z.string(), text: z.string() })),
  context: contextSchema.optional().describe('Facts about the workload that the user gave (1.1).'),
});
export const userVersion = '1.2';
export const userSchema = documentSchema('user', userVersion, userDataSchema);
export type UserData = z.infer<typeof userDataSchema>;

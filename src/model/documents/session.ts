import { codeSchema } from '../code-schema.js';
import type { ErrorCode } from '../errors.js';
import { z } from 'zod';
import { documentSchema, issueSchema } from '../document.js';
import { manifestDataSchema, userDataSchema, userVersion } from '../manifest.js';
import { subjects } from '../subjects.js';

const listedSessionSchema = z.object({
  id: z.string(),
  name: z.string().nullable(),
  tags: z.array(z.string()),
  kind: z.string().nullable(),
  subjects: z.array(z.enum(subjects)).nullable(),
  title: z.string().nullable(),
  status: z.string().nullable(),
  started_at: z.string().nullable(),
  bytes: z.number().nullable().describe('Tables and artifacts.'),
  headline: z
    .string()
    .nullable()
    .describe(
      'The figure of its last analysis, e.g. "decode 13.1 ms/step, 2.10× roofline, GPU idle 81 %"; null with the reason below.',
    ),
  headline_why: z
    .enum(['not_analyzed', 'no_time'])
    .nullable()
    .describe('not_analyzed: `explain` writes it. no_time: the session has no time to show.'),
  broken: z
    .object({ code: codeSchema<ErrorCode>(), text: z.string() })
    .nullable()
    .describe('Why the session cannot be opened; its other fields except id, name and tags are null then.'),
});

/** `inferscope session list`: the session made or imported last is at the end. */
export const sessionListDocumentSchema = documentSchema(
  'session-list',
  '1.2',
  z.object({
    home: z.string(),
    sessions: z.array(listedSessionSchema),
    jobs: z
      .array(
        z.object({
          folder: z.string().describe('Argument of `session join`.'),
          recorded: z.array(z.number().int()),
          unfinished: z.array(z.number().int()).describe('Ranks that still record or were killed.'),
        }),
      )
      .optional()
      .describe('Jobs with ranks that are not joined.'),
  }),
);

/** `inferscope session show`. */
export const sessionShowDocumentSchema = documentSchema(
  'session-show',
  '1.1',
  z.object({
    folder: z.string(),
    written_by: z.string(),
    bytes: z.number(),
    user: userDataSchema,
    manifest: manifestDataSchema,
    import_issues: z.array(issueSchema).describe('What was lost or doubtful when the session was written.'),
  }),
);

/** `inferscope session rename|tag|note|set`: the new content of user.json. */
export const sessionUserDocumentSchema = documentSchema(
  'session-user',
  userVersion,
  z.object({ id: z.string(), user: userDataSchema }),
);

/** `inferscope session delete`. */
export const sessionDeleteDocumentSchema = documentSchema(
  'session-delete',
  '1.0',
  z.object({ deleted: z.array(z.string()) }),
);

/** `inferscope session export`. */
export const sessionExportDocumentSchema = documentSchema(
  'session-export',
  '1.0',
  z.object({
    id: z.string(),
    path: z.string(),
    bytes: z.number(),
    sha256: z.string(),
    files: z.number().int(),
    raw_reports: z
      .array(z.string())
      .default([])
      .describe("Profilers' binary reports: left out, or included with --raw."),
  }),
);

/** `inferscope session import`. */
export const sessionImportDocumentSchema = documentSchema(
  'session-import',
  '1.0',
  z.object({
    id: z.string(),
    outcome: z
      .enum(['imported', 'already_here'])
      .describe('already_here: the same content is already saved, nothing changed.'),
    dropped_name: z.string().nullable().describe('Name given up because another session has it.'),
  }),
);

/** `inferscope session verify`: every file of the sessions with its state. Exit code 5 unless all are ok. */
export const sessionVerifyDocumentSchema = documentSchema(
  'session-verify',
  '1.0',
  z.object({
    sessions: z.array(
      z.object({
        id: z.string(),
        ok: z.boolean(),
        files: z.array(
          z.object({
            path: z.string(),
            state: z.enum(['ok', 'damaged', 'missing', 'unknown']),
            detail: z.string().nullable(),
          }),
        ),
      }),
    ),
  }),
);

/** `inferscope sql --format json`: integers above 2^53 are decimal text. */
export const sqlDocumentSchema = documentSchema(
  'sql',
  '1.0',
  z.object({
    sessions: z.array(z.string()),
    columns: z.array(z.object({ name: z.string(), type: z.string() })),
    rows: z.array(z.array(z.unknown())).describe('One array per row, in the order of `columns`.'),
    truncated: z.boolean().describe('True when the query has more rows than --max-rows.'),
  }),
);

/** `inferscope sql --schema --format json`. */
export const sqlSchemaDocumentSchema = documentSchema(
  'sql-schema',
  '1.1',
  z.object({
    tables: z.array(
      z.object({
        name: z.string(),
        doc: z.string(),
        derived: z.boolean().describe('Computed from the recorded tables when a query names it.'),
        columns: z.array(z.object({ name: z.string(), type: z.string(), doc: z.string() })),
      }),
    ),
  }),
);

export type ListedSession = z.infer<typeof listedSessionSchema>;
export type SessionDetails = z.infer<typeof sessionShowDocumentSchema>['data'];
export type SessionsVerified = z.infer<typeof sessionVerifyDocumentSchema>['data'];

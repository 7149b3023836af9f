import { z } from 'zod';
import { InferscopeError } from './errors.js';
import type { IssueCode } from './issue-codes.js';
import { sentenceSchema } from './sentence-template.js';
import { toolVersion } from './version.js';
import { codeSchema } from './code-schema.js';

/** Something lost, doubtful or degraded, shown wherever it changes a conclusion. */
export const issueSchema = z.object({
  code: codeSchema<IssueCode>(),
  severity: z.enum(['info', 'warning', 'error']),
  text: z.string(),
  count: z.number().int().optional(),
  sentence: sentenceSchema
    .optional()
    .describe(
      'Template and arguments of a text with numbers: notices of several launches or ranks that differ only in the numbers are merged.',
    ),
});
export type Issue = z.infer<typeof issueSchema>;

/** The envelope of every JSON document: an addition is a minor version, and readers reject another major version. */
export function documentSchema<T extends z.ZodType>(name: string, version: string, data: T) {
  const [major] = version.split('.');
  return z.object({
    schema: z.string().regex(new RegExp(`^inferscope/${name}/${major}\\.\\d+$`)),
    tool_version: z.string(),
    data,
    issues: z.array(issueSchema),
  });
}

export interface Document<T> {
  schema: string;
  tool_version: string;
  data: T;
  issues: Issue[];
}

export function document<T>(name: string, version: string, data: T, issues: Issue[] = []): Document<T> {
  return { schema: `inferscope/${name}/${version}`, tool_version: toolVersion, data, issues };
}

/**
 * Major version of a document's `schema` string.
 * @throws E_RECORD_FILE unless the text has the form inferscope/<name>/<major>.<minor>
 */
export function schemaMajor(schema: unknown, name: string): number {
  const match = typeof schema === 'string' ? /^inferscope\/([\w-]+)\/(\d+)\.(\d+)$/.exec(schema) : null;
  if (!match || match[1] !== name) {
    throw new InferscopeError('E_RECORD_FILE', {
      what: `not an inferscope/${name} document: schema is ${JSON.stringify(schema)}`,
      why: 'The file was written by something else, or its first lines were changed.',
      fix: `Give a file with a "schema" that starts with inferscope/${name}/.`,
    });
  }
  return Number(match[2]);
}

import { z } from 'zod';

/** The session that a document is about. */
export const sessionIdentitySchema = z.object({
  id: z.string(),
  name: z.string().nullable(),
  title: z.string(),
  kind: z.string(),
  started_at: z.string(),
  status: z.enum(['complete', 'interrupted', 'failed']),
});

import { z } from 'zod';

/** Which session a document is about. */
export const sessionIdentitySchema = z.object({
  id: z.string(),
  name: z.string().nullable(),
  title: z.string(),
  kind: z.string(),
  started_at: z.string(),
  status: z.enum(['complete', 'interrupted', 'failed']),
});

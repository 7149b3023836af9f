import { z } from 'zod';

/** Statistics of durations, ns. sd: sample standard deviation, null for one value. */
export const spreadSchema = z.object({
  count: z.number().int(),
  total_ns: z.number(),
  mean_ns: z.number(),
  median_ns: z.number(),
  min_ns: z.number(),
  max_ns: z.number(),
  sd_ns: z.number().nullable(),
});

export type Spread = z.infer<typeof spreadSchema>;

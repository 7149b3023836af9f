import { z } from 'zod';

/**
 * A sentence as its template, with {} for each argument or {unit} for one with a unit: what says the same of several launches
 * is known by it.
 */
export const saidSchema = z.object({
  template: z.string(),
  args: z.array(z.union([z.number(), z.string()])),
});
export type Said = z.infer<typeof saidSchema>;

/** With another text: what it was made of no longer holds. */
export function withText<T extends { text: string; said?: Said | undefined }>(
  { said: of, ...one }: T,
  text: string,
): Omit<T, 'said'> & { text: string; said?: Said } {
  return { ...one, text, ...(of && text === one.text ? { said: of } : {}) };
}

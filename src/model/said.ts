import { z } from 'zod';

/**
 * A sentence as a template, with {} for each argument or {unit} for one with a unit: equal sentences of several launches are recognized by
 * it.
 */
export const saidSchema = z.object({
  template: z.string(),
  args: z.array(z.union([z.number(), z.string()])),
});
export type Said = z.infer<typeof saidSchema>;

/** Replaces the text of an issue and removes its template, which no longer matches. */
export function withText<T extends { text: string; said?: Said | undefined }>(
  { said: of, ...one }: T,
  text: string,
): Omit<T, 'said'> & { text: string; said?: Said } {
  return { ...one, text, ...(of && text === one.text ? { said: of } : {}) };
}

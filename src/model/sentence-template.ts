import { z } from 'zod';

/**
 * A sentence as a template, with {} for each argument or {unit} for one with a unit: equal sentences of several launches are recognized by
 * it.
 */
export const sentenceSchema = z.object({
  template: z.string(),
  args: z.array(z.union([z.number(), z.string()])),
});
export type Sentence = z.infer<typeof sentenceSchema>;

/** Replaces the text of an issue and removes its template, which no longer matches. */
export function withText<T extends { text: string; said?: Sentence | undefined }>(
  { said, ...one }: T,
  text: string,
): Omit<T, 'said'> & { text: string; said?: Sentence } {
  return { ...one, text, ...(said && text === one.text ? { said } : {}) };
}

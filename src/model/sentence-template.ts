import { z } from 'zod';

/**
 * A sentence as a template, with {} for each argument or {unit} for one with a unit: sentences of several launches that differ only in their
 * arguments are recognized by it.
 */
export const sentenceSchema = z.object({
  template: z.string(),
  args: z.array(z.union([z.number(), z.string()])),
});
export type Sentence = z.infer<typeof sentenceSchema>;

/** Replaces the text of an issue and removes its template, which no longer matches. */
export function withText<T extends { text: string; sentence?: Sentence | undefined }>(
  { sentence, ...issue }: T,
  text: string,
): Omit<T, 'sentence'> & { text: string; sentence?: Sentence } {
  return { ...issue, text, ...(sentence && text === issue.text ? { sentence } : {}) };
}

import { z } from 'zod';

/** A sentence as its template, with {} for each argument: what says the same of several launches is known by it. */
export const saidSchema = z.object({
  template: z.string(),
  args: z.array(z.union([z.number(), z.string()])),
});
type Said = z.infer<typeof saidSchema>;

/** A sentence and its arguments: said`${3} ranges were never closed`. */
export function said(parts: TemplateStringsArray, ...args: Said['args']): { text: string; said: Said } {
  const of = { template: parts.join('{}'), args };
  return { text: filled(of), said: of };
}

const filled = ({ template, args }: Said): string =>
  template
    .split('{}')
    .map((part, index) => `${index === 0 ? '' : args[index - 1]}${part}`)
    .join('');

interface Saying {
  text: string;
  said?: Said | undefined;
}

/** The same for sayings that differ in their numbers only; those without arguments by their text. */
export const sayingKey = ({ text, said: of }: Saying): string =>
  of ? JSON.stringify([of.template, of.args.filter((one) => typeof one === 'string')]) : text;

/** One text for sayings of one key: a number that differs becomes "1.03 to 1.14". */
export function rangedText(sayings: readonly Saying[]): string {
  const [first] = sayings;
  if (!first?.said) return first?.text ?? '';
  const args = first.said.args.map((own, index) => {
    const numbers = sayings.map(({ said: of }) => of?.args[index]).filter((one) => typeof one === 'number');
    const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
    return typeof own === 'string' || low === high ? own : `${low} to ${high}`;
  });
  return filled({ ...first.said, args });
}

/** With another text: what it was made of no longer holds. */
export function retold<T extends Saying>({ said: of, ...one }: T, text: string): Omit<T, 'said'> & Saying {
  return { ...one, text, ...(of && text === one.text ? { said: of } : {}) };
}

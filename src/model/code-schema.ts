import { z } from 'zod';

/** A code of a table (issues, reasons). Unknown codes of newer versions are accepted, since their text explains them. */
export const codeSchema = <T extends string>(): z.ZodType<T, T> => z.string() as unknown as z.ZodType<T, T>;

import { z } from 'zod';

/** A code of a table (issues, reasons). Documents of a newer version may have others; these pass, and their text says what is meant. */
export const codeSchema = <T extends string>(): z.ZodType<T, T> => z.string() as unknown as z.ZodType<T, T>;

import { z } from 'zod';
import { barHeads } from '../bars.js';

/** A bar of the waterfall: one of the heads, after a dot what of it (a class, a direction of copies, a cause). */
export const barIdSchema = z.string().regex(new RegExp(`^(${barHeads.join('|')})(\\..+)?$`));

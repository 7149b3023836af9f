import { z } from 'zod';
import { barHeads } from '../bars.js';

/** Id of a bar of the waterfall: a head, optionally with a dot and a subdivision (a class, a copy direction, a cause). */
export const barIdSchema = z.string().regex(new RegExp(`^(${barHeads.join('|')})(\\..+)?$`));

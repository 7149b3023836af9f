import { InferscopeError } from '../../model/errors.js';

/**
 * Shapes of which none can be measured are an error; where one can, the others are left out with their reason.
 * @param refusals why each shape cannot be measured; null where it can
 * @throws E_LENGTHS
 */
export function refuseAll(refusals: readonly (string | null)[]): void {
  if (refusals.includes(null)) return;
  throw new InferscopeError('E_LENGTHS', {
    what:
      refusals.length === 1
        ? 'this shape cannot be measured'
        : `none of ${refusals.length} shapes can be measured`,
    why: refusals[0] ?? 'There is none.',
    fix: 'Lower --input-len, --output-len or --batch-size.',
  });
}

import { InferscopeError } from '../../model/errors.js';

/**
 * Throws if no shape can be measured; otherwise those that cannot are skipped with their reason.
 * @param refusals why each shape cannot be measured; null if it can
 * @throws E_LENGTHS
 */
export function refuseAll(refusals: readonly (string | null)[]): void {
  if (refusals.includes(null)) return;
  throw new InferscopeError('E_LENGTHS', {
    what:
      refusals.length === 1
        ? 'this shape cannot be measured'
        : `none of ${refusals.length} shapes can be measured`,
    why: refusals[0] ?? 'There are no shapes.',
    fix: 'Lower --input-len, --output-len or --batch-size.',
  });
}

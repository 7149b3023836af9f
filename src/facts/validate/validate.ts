import type { Validation } from '../../model/documents/validate.js';
import {
  fitSummary,
  componentSummaries,
  errorSummary,
  restSummary,
  groupSummaries,
} from './error-summary.js';
import type { ProfileFields } from './profile-fields.js';
import { recommendations } from './recommend.js';
import { validateProfile, type Tolerance } from './validate-profile.js';

/** A component may be off by twice the total's tolerance or by 64 MiB, whichever is larger. */
export function toleranceOf(total: number): Tolerance {
  return { total, component: { share: 2 * total, bytes: 64 * 2 ** 20 } };
}

/**
 * Compares the calculator with measured profiles: errors by component and total, by family, dtype and tensor
 * parallelism, the worst first. Impossible measurements are rejected with the reason. It fails if the total of a
 * compared profile is off by more than the tolerance.
 */
export function validateProfiles(
  profiles: readonly { source: string; profile: ProfileFields }[],
  tolerance: Tolerance,
): Omit<Validation, 'session'> {
  const validated = profiles.map(({ source, profile }) => validateProfile(profile, source, tolerance));
  const rows = validated.map(({ row }) => row);
  const compared = rows.filter(({ status }) => status === 'compared');
  const totals = compared.flatMap(({ total }) => (total ? [total] : []));
  const within_tolerance = totals.filter((total) => total.within_tolerance).length;
  const absoluteShare = (share: number | null | undefined): number => Math.abs(share ?? 0);
  return {
    tolerance: tolerance.total,
    component_tolerance: tolerance.component,
    result:
      compared.length === 0 ? 'nothing_compared' : within_tolerance === compared.length ? 'passed' : 'failed',
    counts: {
      compared: compared.length,
      rejected: rows.filter(({ status }) => status === 'rejected').length,
      skipped: rows.filter(({ status }) => status === 'skipped').length,
      within_tolerance,
    },
    total: errorSummary(totals),
    total_by_fit: fitSummary(compared),
    components: componentSummaries(compared),
    uncovered: restSummary(compared),
    groups: groupSummaries(compared),
    profiles: rows.toSorted(
      (a, b) => absoluteShare(b.total?.error_share) - absoluteShare(a.total?.error_share),
    ),
    recommendations: recommendations(validated),
  };
}

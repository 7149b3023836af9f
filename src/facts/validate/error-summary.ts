import {
  errorDimensions,
  type ErrorSummary,
  type ValidatedProfile,
  type Validation,
} from '../../model/documents/validate.js';
import { estimatedComponents } from '../../model/memory-components.js';

interface ComparedBytes {
  error_bytes: number;
  error_share: number | null;
  within_tolerance: boolean;
}

export function errorSummary(rows: readonly ComparedBytes[]): ErrorSummary {
  const shares = rows.flatMap(({ error_share: share }) => (share === null ? [] : [share]));
  const mean = (values: readonly number[]): number | null =>
    values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length;
  const worst = shares.reduce<number | null>(
    (most, share) => (most === null || Math.abs(share) > Math.abs(most) ? share : most),
    null,
  );
  return {
    profiles: rows.length,
    mean_share: mean(shares),
    mean_absolute_share: mean(shares.map(Math.abs)),
    worst_share: worst,
    mean_absolute_bytes: mean(rows.map(({ error_bytes }) => Math.abs(error_bytes))) ?? 0,
    within_tolerance: rows.filter(({ within_tolerance }) => within_tolerance).length,
  };
}

export function componentSummaries(profiles: readonly ValidatedProfile[]): Validation['components'] {
  return estimatedComponents.flatMap((component) => {
    const rows = profiles.flatMap((profile) =>
      profile.components.filter((candidate) => candidate.component === component),
    );
    return rows.length === 0 ? [] : [{ component, ...errorSummary(rows) }];
  });
}

/** Errors of the total on runs used to fit constants, separate from the other runs. */
export function fitSummary(profiles: readonly ValidatedProfile[]): Validation['total_by_fit'] {
  const summary = (fitted: boolean) =>
    errorSummary(
      profiles.flatMap((profile) => (profile.total && profile.fitted === fitted ? [profile.total] : [])),
    );
  return profiles.some(({ fitted }) => fitted) ? { fitted: summary(true), others: summary(false) } : null;
}

export function restSummary(profiles: readonly ValidatedProfile[]): Validation['uncovered'] {
  const rows = profiles.flatMap(({ uncovered }) => (uncovered === null ? [] : [uncovered]));
  return rows.length === 0 ? null : errorSummary(rows);
}

/** Errors of the total by family, dtype, GPUs …; other dimensions are left out if all profiles have the same value. */
export function groupSummaries(profiles: readonly ValidatedProfile[]): Validation['groups'] {
  return errorDimensions.flatMap((dimension) => {
    const groups = new Map<string, ComparedBytes[]>();
    for (const profile of profiles) {
      if (!profile.total) continue;
      const value = String(profile[dimension] ?? 'none');
      groups.set(value, [...(groups.get(value) ?? []), profile.total]);
    }
    const isAlwaysListed =
      dimension === 'family' || dimension === 'dtype' || dimension === 'tensor_parallel_size';
    if (groups.size < 2 && !isAlwaysListed) return [];
    return [...groups].map(([value, rows]) => ({ dimension, value, ...errorSummary(rows) }));
  });
}

/** Minimum error of an achieved gain, as a share of it: machines drift between runs by more than the interval of a mean shows. */
export const minGainErrorShare = 0.05;

/** Whether a gain's error is this minimum, not that of the two means. */
export const isMinGainError = (gained: number | null, error: number | null): boolean =>
  gained !== null && error !== null && error <= minGainErrorShare * Math.abs(gained) * (1 + 1e-9);

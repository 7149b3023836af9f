/**
 * Half width of a 95 % interval, what stands behind "±": from the value to the farther end, since the end of a quantity that
 * cannot be negative is cut at 0. Null without an interval.
 */
export function halfInterval({
  value,
  ci95,
}: {
  value: number | null;
  ci95?: readonly [number, number] | null | undefined;
}): number | null {
  return value === null || !ci95 ? null : Math.max(ci95[1] - value, value - ci95[0]);
}

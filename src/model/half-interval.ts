/**
 * Half width of a 95 % interval for "±": from the value to the farther end, since the lower end of a non-negative quantity is cut at 0.
 * Null without an interval.
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

/** Text of a version coded as 1000 · major + 10 · minor, as in CUDA functions and captures: 13000 → "13.0", 12040 → "12.4". */
export function cudaVersion(code: number): string {
  const rest = code % 1000;
  return `${(code - rest) / 1000}.${(rest - (rest % 10)) / 10}`;
}

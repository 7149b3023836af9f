/** A batch of matrices: [batch, rows, columns]. */
const isBatch = (shape: number[] | undefined): shape is number[] =>
  Array.isArray(shape) &&
  shape.length === 3 &&
  shape.every((size) => typeof size === 'number') &&
  shape[0]! > 1;

/** Whether the second of two batched products takes the result of the first: queries × keys, then scores × values. */
export function multipliesScores(before: number[][] | undefined, after: number[][] | undefined): boolean {
  const [left, right] = (before ?? []).filter(isBatch).slice(-2);
  const [scores] = (after ?? []).filter(isBatch).slice(-2);
  return (
    left !== undefined &&
    right !== undefined &&
    scores !== undefined &&
    scores[0] === left[0] &&
    scores[1] === left[1] &&
    scores[2] === right[2]
  );
}

/**
 * Greedy sampling: the index of the largest logit of each row.
 * @param logits [batch, vocab], row-major
 * @returns [batch] token ids; on ties the first, as in torch.argmax on CPU
 */
export function argmax(logits: Float32Array, batchSize: number): Int32Array {
  const vocabSize = logits.length / batchSize;
  const tokens = new Int32Array(batchSize);
  for (let row = 0; row < batchSize; row++) {
    const from = row * vocabSize;
    let best = from;
    let largest = logits[from]!;
    for (let i = from + 1; i < from + vocabSize; i++) {
      const value = logits[i]!;
      if (value > largest) {
        largest = value;
        best = i;
      }
    }
    tokens[row] = best - from;
  }
  return tokens;
}

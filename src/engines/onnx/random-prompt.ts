import { draw, streamKey } from './random-weights.js';

interface PromptShape {
  batchSize: number;
  inputLen: number;
  vocabSize: number;
  seed: number;
  /** Each iteration gets different tokens, so that no cached prompt is measured. */
  iteration: number;
}

/** Seeded random token ids, one Int32Array of inputLen per sequence, uniform over the vocabulary. */
export function randomPrompt({ batchSize, inputLen, vocabSize, seed, iteration }: PromptShape): Int32Array[] {
  const key = streamKey(seed, `prompt.${iteration}`);
  return Array.from({ length: batchSize }, (_, row) =>
    // A 32-bit draw times the vocabulary, shifted by 32, is uniform to 1 in 2^32 / vocab.
    Int32Array.from({ length: inputLen }, (__, i) =>
      Math.floor(((draw(key, row * inputLen + i) >>> 0) / 2 ** 32) * vocabSize),
    ),
  );
}

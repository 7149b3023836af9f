import { draw, streamKey } from './random-weights.js';

interface PromptShape {
  batchSize: number;
  inputLen: number;
  vocabSize: number;
  seed: number;
  /** Another iteration gets other tokens, so that nothing is measured on a cached prompt. */
  iteration: number;
}

/** Seeded random token ids, one Int32Array of inputLen a sequence, uniform over the vocabulary. */
export function randomPrompt({ batchSize, inputLen, vocabSize, seed, iteration }: PromptShape): Int32Array[] {
  const key = streamKey(seed, `prompt.${iteration}`);
  return Array.from({ length: batchSize }, (_, row) =>
    // A 32-bit draw times the vocabulary, shifted by 32, is uniform to 1 in 2^32 / vocab.
    Int32Array.from({ length: inputLen }, (__, i) =>
      Math.floor(((draw(key, row * inputLen + i) >>> 0) / 2 ** 32) * vocabSize),
    ),
  );
}

import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { InferscopeError, messageOf } from '../../model/errors.js';

export interface TextTokenizer {
  /** Token ids with the special tokens that the tokenizer's post-processor adds. */
  encode(text: string): number[];
  /** Text without special tokens. */
  decode(tokens: ArrayLike<number>): string;
}

/**
 * Reads a Hugging Face tokenizer.json (and the tokenizer_config.json next to it, if any).
 * @throws E_MODEL_FILE if the file cannot be read or is not a tokenizer
 */
export async function loadTokenizer(tokenizerPath: string): Promise<TextTokenizer> {
  const { Tokenizer } = await import('@huggingface/tokenizers');
  try {
    const json = JSON.parse(await readFile(tokenizerPath, 'utf8')) as object;
    const config = await readFile(join(dirname(tokenizerPath), 'tokenizer_config.json'), 'utf8').then(
      (text) => JSON.parse(text) as object,
      () => ({}),
    );
    const tokenizer = new Tokenizer(json, config);
    return {
      encode: (text) => tokenizer.encode(text).ids,
      decode: (tokens) =>
        tokens.length === 0 ? '' : tokenizer.decode(Array.from(tokens), { skip_special_tokens: true }),
    };
  } catch (error) {
    throw new InferscopeError(
      'E_MODEL_FILE',
      {
        what: `cannot use the tokenizer ${tokenizerPath}`,
        why: messageOf(error),
        fix: 'Take tokenizer.json again from where the model was published, or leave it out: lengths are then in words.',
      },
      { cause: error },
    );
  }
}

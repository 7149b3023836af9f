import type { TextTokenizer } from '../tokenizer.js';

const consonants = 'bdfghklmnprstvwz';
const vowels = 'aeiou';
const syllables = [...consonants].flatMap((consonant) => [...vowels].map((vowel) => consonant + vowel));

/**
 * A tokenizer for models without one (random weights): a word is a token. Token n is written as n in base 80 with
 * syllables as digits and a space before it, so that generated text encodes to the same tokens; any other word gets a
 * token by hash. Prompts therefore have as many tokens as words.
 */
export function wordCodec(vocabSize: number): TextTokenizer {
  const digits = Math.ceil(Math.log(vocabSize) / Math.log(syllables.length));
  function word(token: number): string {
    let text = '';
    for (let remaining = token, digit = 0; digit < digits; digit++) {
      text = syllables[remaining % syllables.length]! + text;
      remaining = Math.floor(remaining / syllables.length);
    }
    return text;
  }
  function token(text: string): number {
    if (text.length === 2 * digits) {
      let value = 0;
      for (let i = 0; i < text.length; i += 2)
        value = value * syllables.length + syllables.indexOf(text.slice(i, i + 2));
      if (value >= 0 && value < vocabSize && word(value) === text) return value;
    }
    let hash = 2166136261;
    for (let index = 0; index < text.length; index++)
      hash = Math.imul(hash ^ text.charCodeAt(index), 16777619) >>> 0;
    return hash % vocabSize;
  }
  return {
    encode: (text) => text.split(/\s+/).filter(Boolean).map(token),
    decode: (tokens) => Array.from(tokens, (value) => ` ${word(value)}`).join(''),
  };
}

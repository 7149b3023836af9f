import type { Random } from '../model/random.js';

/** The tokenizer functions that the generator needs; the caller loads the tokenizer. */
export interface PromptTokenizer {
  encode(text: string): number[];
  decode(tokens: ArrayLike<number>): string;
}

interface Prompt {
  text: string;
  /** Exact count by a tokenizer; null if made of words. */
  tokens: number | null;
}

/** Common English words, one token each in most vocabularies. */
const words =
  'the of and to in is was for that with his they at be this from have by one had not but what all were when we there can an your which their said if do will each about how up out them then she many some so these would other into has more her two like him see time could no make than first been its who now people my made over did down only way find use may water long little very after words called just where most know get through back much before go good new write our used me man too any day same right look think also around another came come work three word must because does part even place well such here take why things help put years different away again off went old number great tell men say small every found still between name should home big give air line set own under read last never us left end along while might next sound below saw something thought both few those always looked show large often together asked house world going want school important until form food keep children feet land side without boy once animals life enough took sometimes four head above kind began almost live page got earth need far hand high year mother light parts country father let night following picture being study second eyes soon times story boys since white days ever paper hard near sentence better best across during today others however sure means knew try told young miles sun ways thing whole hear example heard several change answer room sea against top turned learn point city play toward five using himself usually'.split(
    ' ',
  );

/**
 * Prompts without common prefixes: the first word almost always differs, so that no prefix cache helps. With
 * `tokenizer`, texts of exactly `inputLen` tokens: words are added or dropped until the encoded length matches, because
 * decoding random tokens and encoding the text does not return them.
 */
export function makePrompt(inputLen: number, random: Random, tokenizer?: PromptTokenizer): Prompt {
  // A leading number makes prompts differ from the first block of a prefix cache on.
  const start = Math.floor(random() * 1e9).toString(36);
  if (!tokenizer) return { text: appendWords(start, inputLen - 1, random), tokens: null };
  for (let tries = 0; tries < 20; tries++) {
    const exactText = exactPrompt(inputLen, random, tokenizer, inputLen > 8 ? start : '');
    if (exactText !== null) return { text: exactText, tokens: inputLen };
  }
  const text = appendWords(start, inputLen - 1, random);
  return { text, tokens: tokenizer.encode(text).length };
}

function appendWords(start: string, count: number, random: Random): string {
  const parts = [start];
  for (let i = 0; i < count; i++) parts.push(word(random));
  return parts.join(' ');
}

function word(random: Random): string {
  return words[Math.floor(random() * words.length)]!;
}

function exactPrompt(
  inputLen: number,
  random: Random,
  tokenizer: PromptTokenizer,
  start: string,
): string | null {
  const parts = start === '' ? [word(random)] : [start];
  for (let rounds = 0; rounds < 40; rounds++) {
    const lacking = inputLen - tokenizer.encode(parts.join(' ')).length;
    if (lacking === 0) return parts.join(' ');
    if (lacking > 0) {
      // Words may be several tokens: half of the missing length at a time while it is large, then one by one.
      const add = lacking > 4 ? Math.ceil(lacking / 2) : 1;
      for (let i = 0; i < add; i++) parts.push(word(random));
    } else parts.splice(Math.max(1, parts.length + Math.min(-1, Math.ceil(lacking / 2))));
    if (parts.length === 1 && lacking < 0) return null;
  }
  return null;
}

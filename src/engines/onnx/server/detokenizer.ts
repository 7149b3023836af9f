import type { TextTokenizer } from '../tokenizer.js';

interface Detokenizer {
  /** Text that this token completes; empty while a character is incomplete or may be part of a stop string. */
  push(token: number): string;
  /** Remaining text after the last token. */
  flush(): string;
  /** True after a stop string; the text ends before it. */
  stopped(): boolean;
}

/**
 * Turns tokens into text one by one. Only tokens since the last complete piece are decoded again, so that time is
 * linear in the answer. Text that may start a stop string is held back until this is decided.
 */
export function detokenizer(tokenizer: TextTokenizer, stop: readonly string[]): Detokenizer {
  const tokens: number[] = [];
  let prefix = 0;
  let read = 0;
  let heldBack = '';
  let stopped = false;
  const maxHeld = Math.max(0, ...stop.map((text) => text.length - 1));

  function decodeNext(): string {
    const before = tokenizer.decode(tokens.slice(prefix, read));
    const text = tokenizer.decode(tokens.slice(prefix));
    // U+FFFD at the end: the next token completes this character.
    if (text.length <= before.length || text.endsWith('\uFFFD')) return '';
    prefix = read;
    read = tokens.length;
    return text.slice(before.length);
  }

  return {
    push(token) {
      tokens.push(token);
      heldBack += decodeNext();
      const stopIndexes = stop.map((text) => heldBack.indexOf(text)).filter((index) => index >= 0);
      if (stopIndexes.length > 0) {
        stopped = true;
        heldBack = heldBack.slice(0, Math.min(...stopIndexes));
        return '';
      }
      const ready = heldBack.slice(0, Math.max(0, heldBack.length - maxHeld));
      heldBack = heldBack.slice(ready.length);
      return ready;
    },
    flush() {
      if (!stopped) {
        const before = tokenizer.decode(tokens.slice(prefix, read));
        heldBack += tokenizer.decode(tokens.slice(prefix)).slice(before.length);
        read = prefix = tokens.length;
      }
      const text = heldBack;
      heldBack = '';
      return text;
    },
    stopped: () => stopped,
  };
}

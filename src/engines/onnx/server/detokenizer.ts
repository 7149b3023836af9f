import type { TextTokenizer } from '../tokenizer.js';

interface Detokenizer {
  /** Text that this token completes; empty while a character is incomplete or may become a stop string. */
  push(token: number): string;
  /** Text held back, once no token follows. */
  rest(): string;
  /** True when a stop string was met; the text ends before it. */
  stopped(): boolean;
}

/**
 * Turns tokens into text one by one. Only the tokens since the last complete piece are decoded again, so that a long
 * answer stays linear. Text that could be the begin of a stop string is held back until it is or is not.
 */
export function detokenizer(tokenizer: TextTokenizer, stop: readonly string[]): Detokenizer {
  const tokens: number[] = [];
  let prefix = 0;
  let read = 0;
  let held = '';
  let stopped = false;
  const hold = Math.max(0, ...stop.map((text) => text.length - 1));

  function decoded(): string {
    const before = tokenizer.decode(tokens.slice(prefix, read));
    const now = tokenizer.decode(tokens.slice(prefix));
    // U+FFFD at the end: the bytes of a character that the next token completes.
    if (now.length <= before.length || now.endsWith('\uFFFD')) return '';
    prefix = read;
    read = tokens.length;
    return now.slice(before.length);
  }

  return {
    push(token) {
      tokens.push(token);
      held += decoded();
      const at = stop.map((text) => held.indexOf(text)).filter((index) => index >= 0);
      if (at.length > 0) {
        stopped = true;
        held = held.slice(0, Math.min(...at));
        return '';
      }
      const ready = held.slice(0, Math.max(0, held.length - hold));
      held = held.slice(ready.length);
      return ready;
    },
    rest() {
      if (!stopped) {
        const before = tokenizer.decode(tokens.slice(prefix, read));
        held += tokenizer.decode(tokens.slice(prefix)).slice(before.length);
        read = prefix = tokens.length;
      }
      const text = held;
      held = '';
      return text;
    },
    stopped: () => stopped,
  };
}

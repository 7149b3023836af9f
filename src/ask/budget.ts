import { formatSetting, plural } from '../vocabulary/format.js';

/** Limits of one question to a language model, independent of the server's replies. */
export interface AskLimits {
  /** Maximum tool calls per reply. */
  callsPerReply: number;
  callsAtOnce: number;
  /** Size limit of one reply, decompressed. 128k tokens of text are about 0.5 MB. */
  replyBytes: number;
  /** Length limit of the answer. */
  answerCharacters: number;
  /** After one of these is used up, the next reply must be the answer. */
  seconds: number;
  tokens: number;
  /** Sent and received. */
  bytes: number;
}

const defaultAskLimits: AskLimits = {
  callsPerReply: 8,
  callsAtOnce: 2,
  replyBytes: 4 * 2 ** 20,
  answerCharacters: 50_000,
  seconds: 600,
  tokens: 1_000_000,
  bytes: 32 * 2 ** 20,
};

/** What a question has used so far. */
export class AskBudget {
  bytes = 0;
  readonly limits: AskLimits;
  readonly #started = performance.now();

  constructor(limits: Partial<AskLimits> = {}) {
    this.limits = { ...defaultAskLimits, ...limits };
  }

  /** Name of the used-up limit; null if none is. */
  usedUp(tokens: number): string | null {
    const { seconds, tokens: maxTokens, bytes } = this.limits;
    if (performance.now() - this.#started >= seconds * 1000) return formatSetting(seconds, 's');
    if (tokens >= maxTokens) return plural(maxTokens, 'token');
    return this.bytes >= bytes ? formatSetting(bytes / 2 ** 20, 'MiB') : null;
  }
}

/** Runs at most `max` tasks concurrently. */
export function limitConcurrency(max: number): <T>(task: () => Promise<T>) => Promise<T> {
  let running = 0;
  const waiting: (() => void)[] = [];
  return async (task) => {
    if (running < max) running++;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await task();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else running--;
    }
  };
}

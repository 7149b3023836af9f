import type { ErrorCode, ErrorParts } from '../../../model/errors.js';
import type { openDecoder } from '../decoder.js';

type Opened = Parameters<typeof openDecoder>;

/** What the thread of a decoder loads. */
export interface DecoderOrder {
  model: Opened[0];
  options: Opened[1];
}

export type DecoderRequest =
  /** Starts a context of `contextLen` tokens. */
  | { type: 'prefill'; prompt: number[]; contextLen: number }
  | { type: 'decode'; token: number }
  | { type: 'release' };

/** An error with the code of an InferscopeError, if it is one. */
export interface SentError {
  message: string;
  known: { code: ErrorCode; parts: ErrorParts } | null;
}

/** One per request, in their order; the first is for opening. */
export type DecoderReply = { logits: Float32Array | null } | { failed: SentError };

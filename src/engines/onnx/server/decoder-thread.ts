import { SHARE_ENV, Worker } from 'node:worker_threads';
import { InferscopeError } from '../../../model/errors.js';
import { childEntry } from '../../../model/installation.js';
import { exitText } from '../../../vocabulary/process-exit.js';
import type { DecoderOrder, DecoderReply, DecoderRequest, SentError } from './decoder-messages.js';

/** A decoder for one sequence in a thread of its own: this thread accepts requests and sends text while the runtime computes. */
export interface DecoderThread {
  /** Starts a context for this many tokens. Returns the logits after the prompt. */
  prefill(prompt: number[], contextLen: number): Promise<Float32Array>;
  /** Returns the logits after the token. */
  decode(token: number): Promise<Float32Array>;
  release(): Promise<void>;
}

/**
 * Loads a model in a thread.
 * @param entry the built decoder-worker.js
 * @throws the errors of openDecoder
 */
export async function startDecoder(
  order: DecoderOrder,
  entry = childEntry('decoder-worker'),
): Promise<DecoderThread> {
  // The runtime reads its settings from the environment of the process.
  const worker = new Worker(entry, { workerData: order, env: SHARE_ENV });
  const waiting: { resolve: (logits: Float32Array | null) => void; reject: (error: Error) => void }[] = [];
  const answered = () =>
    new Promise<Float32Array | null>((resolve, reject) => void waiting.push({ resolve, reject }));
  const failAll = (error: Error) => {
    for (const { reject } of waiting.splice(0)) reject(error);
  };
  worker.on('message', (reply: DecoderReply) => {
    const next = waiting.shift();
    if ('failed' in reply) next?.reject(errorOf(reply.failed));
    else next?.resolve(reply.logits);
  });
  worker.on('error', failAll);
  worker.on('exit', (code) => failAll(new Error(`the thread of the model ${exitText(null, code)}`)));
  const ask = (request: DecoderRequest): Promise<Float32Array | null> => {
    worker.postMessage(request, []);
    return answered();
  };
  await answered();
  return {
    prefill: async (prompt, contextLen) => (await ask({ type: 'prefill', prompt, contextLen }))!,
    decode: async (token) => (await ask({ type: 'decode', token }))!,
    async release() {
      await ask({ type: 'release' });
    },
  };
}

const errorOf = ({ message, known }: SentError): Error =>
  known === null ? new Error(message) : new InferscopeError(known.code, known.parts);

import { parentPort, workerData } from 'node:worker_threads';
import { InferscopeError, messageOf } from '../../../model/errors.js';
import { openDecoder } from '../decoder.js';
import type { DecoderOrder, DecoderReply, DecoderRequest } from './decoder-messages.js';

// Built as dist/decoder-worker.js: a thread that the runtime may block.
const { model, options } = workerData as DecoderOrder;
const opened = openDecoder(model, options);

async function answer(request: DecoderRequest): Promise<Float32Array | null> {
  const decoder = await opened;
  switch (request.type) {
    case 'prefill':
      // onnxruntime-node copies the whole cache in every step, so it is only as long as this answer needs.
      decoder.reserve(1, request.contextLen);
      return (await decoder.prefill([request.prompt])).logits;
    case 'decode':
      return (await decoder.decode([request.token])).logits;
    case 'release':
      await decoder.release();
      // After the reply: the thread ends.
      setImmediate(() => parentPort!.close());
      return null;
  }
}

const post = (message: DecoderReply, buffers: ArrayBuffer[] = []) =>
  parentPort!.postMessage(message, buffers);

async function reply(result: Promise<Float32Array | null>): Promise<void> {
  try {
    const logits = await result;
    // The decoder's own are valid until its next call, and may be a part of those of all positions.
    const own = logits && new Float32Array(logits);
    post({ logits: own }, own ? [own.buffer] : []);
  } catch (error) {
    const known = error instanceof InferscopeError ? { code: error.code, parts: error.parts } : null;
    post({ failed: { message: messageOf(error), known } });
  }
}

void reply(opened.then(() => null));
parentPort!.on('message', (request: DecoderRequest) => void reply(answer(request)));

import type { AddressInfo } from 'node:net';
import { listen } from '../../../model/listen.js';
import type { OnnxModel } from '../onnx-model.js';
import { loadTokenizer } from '../tokenizer.js';
import { servedApp } from './app.js';
import { startDecoder } from './decoder-thread.js';
import { generationQueue } from './generation-queue.js';
import { wordCodec } from './word-codec.js';

interface ServeOptions {
  host: string;
  /** 0: any free port. */
  port: number;
  threads: number;
  contextLen: number;
}

export interface RunningServer {
  host: string;
  port: number;
  tokenizer: 'tokenizer.json' | 'words';
  /** Accepts no more requests, finishes the current ones, and closes. */
  drain(): Promise<void>;
  /** Requests running or waiting. */
  pending(): number;
}

/**
 * Loads a model and serves it. Requests are computed one at a time.
 * @throws E_USAGE if the port is in use, E_MODEL_FILE for its tokenizer, and the errors of openDecoder
 */
export async function serveModel(model: OnnxModel, options: ServeOptions): Promise<RunningServer> {
  const { threads, contextLen } = options;
  const decoder = await startDecoder({ model, options: { threads, contextLen } });
  try {
    const vocabSize = Number(model.config['vocab_size']);
    const tokenizer =
      model.tokenizerPath === null ? wordCodec(vocabSize) : await loadTokenizer(model.tokenizerPath);
    const eos = [model.config['eos_token_id'] ?? []].flat().map(Number);
    const queue = generationQueue(decoder, tokenizer, eos);
    let draining = false;
    const app = servedApp(
      { name: model.name, host: options.host, contextLen, vocabSize, tokenizer, queue },
      () => draining,
    );
    const server = await listen(app.fetch, options);
    return {
      host: options.host,
      port: (server.address() as AddressInfo).port,
      tokenizer: model.tokenizerPath === null ? 'words' : 'tokenizer.json',
      pending: () => queue.metrics.running + queue.metrics.waiting,
      async drain() {
        draining = true;
        const closed = new Promise<void>((resolve) => server.close(() => resolve()));
        await queue.idle();
        // A connection counts as idle shortly after its last answer ended.
        const sweep = setInterval(() => server.closeIdleConnections(), 20);
        await closed.finally(() => clearInterval(sweep));
        await decoder.release();
      },
    };
  } catch (error) {
    await decoder.release();
    throw error;
  }
}

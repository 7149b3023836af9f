import type { Command } from 'commander';
import { defineBenchOptions } from './bench-options.js';

export function defineLatency(command: Command): void {
  const description =
    'measure TTFT, TPOT and end-to-end latency of one shape, with intervals over process launches';
  defineBenchOptions(command.summary(description).description(description), 'latency', {
    batchSize: { isSwept: false, default: '1' },
    inputLen: { isSwept: false, default: '128' },
    outputLen: { isSwept: false, default: '64' },
    examples: [
      ['inferscope bench latency', 'measure a 24 M parameter Llama on this CPU, 128 in + 64 out tokens'],
      [
        'inferscope bench latency --engine transformers --engine-arg attn=sdpa,eager',
        'compare two attention implementations of PyTorch',
      ],
    ],
  });
}

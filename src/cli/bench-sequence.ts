import type { Command } from 'commander';
import { defineBenchOptions } from './bench-options.js';

export function defineSequence(command: Command): void {
  const description = 'measure how latency grows with prompt and output length';
  defineBenchOptions(command.summary(description).description(description), 'sequence', {
    batchSize: { isSwept: false, default: '1' },
    inputLen: { isSwept: true, default: '10,50,200,1000, at 50 output tokens' },
    outputLen: { isSwept: true, default: '50,100,200, at 200 prompt tokens' },
    examples: [
      ['inferscope bench sequence', 'measure prompts of 10 to 1000 and outputs of 50 to 200 tokens'],
      [
        'inferscope bench sequence --input-len 64,256,1024 --output-len 32,128 --grid',
        'measure all six pairs',
      ],
    ],
  });
}

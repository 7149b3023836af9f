import type { Command } from 'commander';
import { defineBenchOptions } from './bench-options.js';

export function defineSuite(command: Command): void {
  const description = 'measure latency, throughput and sequence scaling in one session';
  defineBenchOptions(command.summary(description).description(description), 'suite', {
    batchSize: { isSwept: true, use: 'latency and sequence use 1', default: '1,4,8,16,32' },
    inputLen: {
      isSwept: true,
      use: 'latency and throughput use the first',
      default: '128, sequence 10,50,200,1000',
    },
    outputLen: {
      isSwept: true,
      use: 'latency and throughput use the first',
      default: '64, sequence 50,100,200',
    },
    examples: [
      ['inferscope bench suite', 'measure everything on the embedded engine; files in ./results'],
      [
        'inferscope bench suite --engine transformers --dtype bfloat16 --output h200',
        'measure TinyLlama in PyTorch on a GPU; files in ./h200',
      ],
    ],
  });
}

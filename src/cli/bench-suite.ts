import type { Command } from 'commander';
import { defineBenchOptions } from './bench-options.js';

export function defineSuite(command: Command): void {
  const description = 'measure latency, throughput and sequence scaling in one session';
  defineBenchOptions(command.summary(description).description(description), 'suite', {
    batchSize: { list: true, default: '1,4,8,16,32 for throughput' },
    inputLen: {
      list: true,
      default: '128 for latency and throughput, else the first; 10,50,200,1000 for sequence',
    },
    outputLen: {
      list: true,
      default: '64 for latency and throughput, else the first; 50,100,200 for sequence',
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

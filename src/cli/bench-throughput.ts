import type { Command } from 'commander';
import { defineBenchOptions } from './bench-options.js';

export function defineThroughput(command: Command): void {
  const description = 'measure tokens/s by batch size: where it saturates and where memory runs out';
  defineBenchOptions(command.summary(description).description(description), 'throughput', {
    batchSize: { isSwept: true, default: '1,4,8,16,32' },
    inputLen: { isSwept: false, default: '128' },
    outputLen: { isSwept: false, default: '64' },
    examples: [
      ['inferscope bench throughput', 'measure batch sizes 1, 4, 8, 16 and 32 on the embedded engine'],
      [
        'inferscope bench throughput --batch-size 1,2,4 --engine-arg threads=1,2',
        'measure three batch sizes with one thread and with two',
      ],
    ],
  });
}

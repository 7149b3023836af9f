import type { Command } from 'commander';
import { defineCompare } from './bench-compare.js';
import { defineLatency } from './bench-latency.js';
import { defineSequence } from './bench-sequence.js';
import { defineServe } from './bench-serve.js';
import { defineSuite } from './bench-suite.js';
import { defineThroughput } from './bench-throughput.js';
import { examples } from './examples.js';

export function define(command: Command): void {
  defineLatency(command.command('latency'));
  defineThroughput(command.command('throughput'));
  defineSequence(command.command('sequence'));
  defineSuite(command.command('suite'));
  defineServe(command.command('serve'));
  defineCompare(command.command('compare <base> <new>'));
  command.addHelpText(
    'after',
    examples(
      ['inferscope bench suite', 'benchmark the embedded model on this CPU: table, report, CSV files'],
      [
        'inferscope bench serve http://127.0.0.1:8000/v1 --rate 2 --sweep',
        'load a server until it saturates',
      ],
    ),
  );
}

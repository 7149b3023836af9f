import process from 'node:process';
import { importPart, type PartOrder } from './import-part.js';
import { importRanks } from './import-ranks.js';
import { abortable } from '../interrupt.js';
import { type MergeOrder, writeMergeResult } from './ranks-on-slurm.js';

// Built as dist/rank-child.js: a process that imports one file of `import --ranks`, so that a damaged file or lack of memory stops only
// this process; in a Slurm job it can also merge the files.
const order = JSON.parse(process.argv[2]!) as PartOrder | MergeOrder;
await abortable((signal) =>
  'file' in order
    ? importPart(order, signal)
    : writeMergeResult(order.result, importRanks(order.patterns, order.options, signal)),
);

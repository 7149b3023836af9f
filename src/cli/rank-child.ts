import process from 'node:process';
import { importPart, type PartOrder } from './import-part.js';
import { abortable } from './interrupt.js';

// Built as dist/rank-child.js: a process that imports one file of `import --ranks`, so that a damaged file or too little
// memory ends this process and not the rest.
const order = JSON.parse(process.argv[2]!) as PartOrder;
await abortable((signal) => importPart(order, signal));

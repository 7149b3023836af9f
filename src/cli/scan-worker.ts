import { takeEvents } from '../import/nsys/take-events.js';
import { answerScan } from '../session/scan-thread.js';

// Built as dist/scan-worker.js: a thread that reads a large file with its own database. import/ defines the rows,
// session/ how they are read.
await answerScan(takeEvents);

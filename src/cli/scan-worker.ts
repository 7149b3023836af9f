import { takeEvents } from '../import/nsys/take-events.js';
import { answerScan } from '../session/scan-thread.js';

// Built as dist/scan-worker.js: a thread that reads a large file with a database of its own. What its rows are only
// import/ knows, how they are read only session/.
await answerScan(takeEvents);

import { writeOrders } from './thread.js';

// Built as dist/parquet-worker.js: a thread that encodes and writes the tables of large captures.
writeOrders();

import { columnParts } from '../import/attribution/in-memory/column-parts.js';
import { encodeOrders } from '../session/parquet/encode-thread.js';

// Built as dist/encode-worker.js: a thread that encodes tables of large captures. import/ defines the content of a
// table, session/ how it is written.
encodeOrders(columnParts);

import { heldParts } from '../import/attribution/held/held-parts.js';
import { encodeOrders } from '../session/parquet/encode-thread.js';

// Built as dist/encode-worker.js: a thread that encodes tables of large captures. What a table is made of only import/
// knows, how it is written only session/.
encodeOrders(heldParts);

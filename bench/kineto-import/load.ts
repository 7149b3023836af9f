import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { attribute } from '../../src/import/attribution/attribute.js';
import type { ImportContext } from '../../src/import/importer.js';
import { databaseMemoryBytes, fillTraceTables, kinetoImporter } from '../../src/import/kineto/importer.js';
import { createSession } from '../../src/session/create.js';
import { homeFolders } from '../../src/session/home.js';
import { measurePhases } from './phases.js';

// One import in a separate process: node load.js TRACE THREADS WORKER [attribute]
const [path = '', threads, workerEntry = '', withAttribution] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), 'kineto-bench-'));
const home = homeFolders({ INFERSCOPE_HOME: folder });
const session = await createSession({ kind: 'import', label: 'bench', home });
const facts = await kinetoImporter.facts(path);
const context: ImportContext = {
  execution_id: 'run',
  capture_id: 'c0',
  host: 'bench',
  zero: { realtime_ns: facts.realtime_zero_ns, monotonic_ns: null },
};
const { workbench, phases } = measurePhases(session.workbench);
const began = performance.now();
await workbench.limit({ memory_bytes: databaseMemoryBytes, threads: 2, return_pages: true });
await fillTraceTables(path, workbench, context, { threads: Number(threads), workerEntry });
const loaded = performance.now();
const [rows] = await workbench.query<{ kernels: number }>(
  'SELECT count(*) AS kernels, sum(dur_ns) AS ns FROM trace_kernels',
);
if (withAttribution) await attribute(workbench, context);
const ended = performance.now();
console.log(
  JSON.stringify({
    threads: Number(threads),
    load_s: (loaded - began) / 1000,
    attribute_s: withAttribution ? (ended - loaded) / 1000 : null,
    // CPU time of all threads, which other load on the machine does not change.
    cpu_s: (process.cpuUsage().user + process.cpuUsage().system) / 1e6,
    peak_rss_mb: Math.round(process.resourceUsage().maxRSS / 1024),
    ...rows,
    ...(withAttribution && { phases: phases(0.02) }),
  }),
);
await session.abandon();
rmSync(folder, { recursive: true, force: true });

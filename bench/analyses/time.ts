// Times each analysis of a session's timeline; a table that several need counts in the first one. Bundled and started by
// run.mjs with a session's folder.
import { basename, dirname } from 'node:path';
import { traceScope } from '../../src/facts/derived/scope.js';
import { readAttribution } from '../../src/facts/trace/attribution.js';
import { readClasses } from '../../src/facts/trace/classes.js';
import { readCopies } from '../../src/facts/trace/copies.js';
import { readDevices } from '../../src/facts/trace/devices.js';
import { readIdle } from '../../src/facts/trace/idle.js';
import { startSpreads } from '../../src/facts/trace/kernel-spreads.js';
import { readKernels } from '../../src/facts/trace/kernels.js';
import { readLaunches } from '../../src/facts/trace/launches.js';
import { readOperators } from '../../src/facts/trace/operators.js';
import { readOverlap } from '../../src/facts/trace/overlap.js';
import { readPhases } from '../../src/facts/trace/phases.js';
import { readShortKernels } from '../../src/facts/trace/short-kernels.js';
import { readTelemetry } from '../../src/facts/trace/telemetry.js';
import { readTimeline } from '../../src/facts/trace/timeline.js';
import { windowClocks } from '../../src/facts/trace/windows.js';
import { homeFolders } from '../../src/session/home.js';
import { openSession } from '../../src/session/open.js';

const folder = process.argv[2] ?? '';
const session = await openSession(
  basename(folder),
  homeFolders({ INFERSCOPE_HOME: dirname(dirname(folder)) }),
);
const { manifest } = session;
const database = await session.connect();

async function timed<T>(name: string, work: () => Promise<T>): Promise<T> {
  const cpu = process.cpuUsage();
  const began = performance.now();
  const result = await work();
  const wall = (performance.now() - began) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  console.log(`${name.padEnd(20)} ${wall.toFixed(3)} s wall  ${((user + system) / 1e6).toFixed(3)} s CPU`);
  return result;
}

const scope = await timed('scope and views', () => traceScope(database, manifest));
const windows = await timed('windows', async () => {
  await scope.need('windows');
  return windowClocks(scope);
});
const phaseResult = await timed('phases', () => readPhases(scope, windows));
await timed('kernel cells', () => scope.need('kernel_cells'));
await timed('devices', () => readDevices(scope, manifest));
const spreads = await timed('medians', async () => {
  const pending = await startSpreads(session, scope);
  const result = await pending.spreads();
  await pending.close();
  return result;
});
await timed('kernels', () => readKernels(scope, phaseResult, spreads.launched));
await timed('classes', () => readClasses(scope, phaseResult));
await timed('copies', () => readCopies(scope));
await timed('launches', () => readLaunches(scope, phaseResult, manifest.workload, spreads));
await timed('idle', () => readIdle(scope));
await timed('overlap', () => readOverlap(scope));
await timed('operators', () => readOperators(scope, phaseResult));
await timed('short kernels', () => readShortKernels(scope));
await timed('attribution', () => readAttribution(scope, session.issues));
await timed('timeline', () => readTimeline(scope));
await timed('telemetry', () => readTelemetry(scope));
await database.close();
console.log(`${Math.round(process.resourceUsage().maxRSS / 1024)} MB peak RSS`);

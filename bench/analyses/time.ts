import { basename, dirname } from 'node:path';
import { traceScope } from '../../src/facts/derived/scope.js';
import { attribution } from '../../src/facts/trace/attribution.js';
import { classes } from '../../src/facts/trace/classes.js';
import { copies } from '../../src/facts/trace/copies.js';
import { devices } from '../../src/facts/trace/devices.js';
import { idle } from '../../src/facts/trace/idle.js';
import { startSpreads } from '../../src/facts/trace/kernel-spreads.js';
import { kernels } from '../../src/facts/trace/kernels.js';
import { launches } from '../../src/facts/trace/launches.js';
import { operators } from '../../src/facts/trace/operators.js';
import { overlap } from '../../src/facts/trace/overlap.js';
import { phases } from '../../src/facts/trace/phases.js';
import { shortKernels } from '../../src/facts/trace/short-kernels.js';
import { telemetry } from '../../src/facts/trace/telemetry.js';
import { timeline } from '../../src/facts/trace/timeline.js';
import { windowClocks } from '../../src/facts/trace/windows.js';
import { homeFolders } from '../../src/session/home.js';
import { openSession } from '../../src/session/open.js';

// Each analysis of a session's timeline on its own, the views before it included once: node time.js SESSION-FOLDER

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
const phaseResult = await timed('phases', () => phases(scope, windows));
await timed('kernel cells', () => scope.need('kernel_cells'));
await timed('devices', () => devices(scope, manifest));
const spreads = await timed('medians', async () => {
  const started = await startSpreads(session, scope);
  const made = await started.spreads();
  await started.close();
  return made;
});
await timed('kernels', () => kernels(scope, phaseResult, spreads.launched));
await timed('classes', () => classes(scope, phaseResult));
await timed('copies', () => copies(scope));
await timed('launches', () => launches(scope, phaseResult, manifest.workload, spreads));
await timed('idle', () => idle(scope));
await timed('overlap', () => overlap(scope));
await timed('operators', () => operators(scope, phaseResult));
await timed('short kernels', () => shortKernels(scope));
await timed('attribution', () => attribution(scope, session.issues));
await timed('timeline', () => timeline(scope));
await timed('telemetry', () => telemetry(scope));
await database.close();
console.log(`${Math.round(process.resourceUsage().maxRSS / 1024)} MB peak RSS`);

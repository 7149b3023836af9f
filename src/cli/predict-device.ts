import { readFile, stat } from 'node:fs/promises';
import { readStoredRoofline } from '../facts/artifact.js';
import { deviceOf } from '../facts/device.js';
import { type DeviceRoofs, roofsOfCpu, roofsOfGpu } from '../facts/predict/device-roofs.js';
import { recordedFloat32As } from '../facts/predict/measured.js';
import { readStoredGpuRoofline } from '../facts/roofs.js';
import { chosenGpuWords, findGpuSheet } from '../hardware/find-gpu.js';
import type { Issue } from '../model/document.js';
import { type GpuRoofline, gpuRooflineSchema } from '../model/documents/gpu-roofline.js';
import { type MachineRoofline, machineRooflineSchema } from '../model/documents/roofline.js';
import { InferscopeError } from '../model/errors.js';
import { sessionFolders } from '../session/folders.js';
import { ensureWritable, homeFolders } from '../session/home.js';
import { readManifest } from '../session/manifest-file.js';
import { openSession, type Session } from '../session/open.js';
import { notify } from './output.js';
import { measureWithProgress } from './progress.js';
import type { Fusion, Launch } from '../model/documents/predict.js';
import type { DType } from '../model/dtype.js';
import { parseJson } from '../model/parse-json.js';
import { hasSubject } from '../model/subjects.js';

export interface PredictOptions {
  model?: string;
  gpu?: string;
  batchSize?: number[];
  inputLen?: number[];
  outputLen?: number;
  dtype?: DType;
  launch?: Launch;
  fusion?: Fusion;
  kernels: string[];
  session?: string;
  roofline?: string;
  threads?: number;
  csv?: string;
  json?: boolean;
  quiet?: boolean;
}

interface DeviceRooflines {
  gpu: GpuRoofline | null;
  cpu: MachineRoofline | null;
}

/**
 * Chooses the device and its rooflines. Device: --gpu; else the CPU for --threads, a CPU roofline or a session on a CPU; else the GPU of the
 * given roofline, session or kernels; else this machine's GPU if its roofline is cached; else the CPU. Rooflines, first match on a GPU of that name: given, the session's own, cached on this machine, newest saved session; else
 * the data sheet.
 * @throws E_USAGE for an unknown GPU
 */
export async function predictDevice(
  options: PredictOptions,
  session: Session | null,
  tables: readonly Session[],
): Promise<{ roofs: DeviceRoofs; issues: Issue[] }> {
  const givenRooflines = options.roofline === undefined ? null : await readRoofs(options.roofline);
  const sessions = [session, ...tables].filter((given) => given !== null);
  const wantsCpu =
    options.gpu === undefined &&
    (options.threads !== undefined ||
      givenRooflines?.gpu === null ||
      sessions[0]?.manifest.workload?.device === 'cpu');
  if (wantsCpu)
    return cpuRoofs(options, givenRooflines?.cpu ?? (await firstStored(sessions, readStoredRoofline)));
  const candidates = [
    givenRooflines?.gpu ?? null,
    ...(await Promise.all(sessions.map(readStoredGpuRoofline))),
    await readCachedRoofline(),
  ];
  const gpu = candidates.find((roofline) => roofline !== null) ?? null;
  const name =
    (options.gpu === undefined ? undefined : driverName(options.gpu, gpu)) ??
    givenRooflines?.gpu?.gpus[0]?.name ??
    sessions.map(({ manifest }) => deviceOf(manifest).name).find((found) => found !== null) ??
    gpu?.gpus[0]?.name;
  if (name === undefined) return cpuRoofs(options, null);
  const measured =
    candidates.find((roofline) => roofline !== null && hasGpu(roofline, name)) ?? (await findMeasured(name));
  return { roofs: roofsOfGpu(name, measured, await recordedFloat32As(session)), issues: [] };
}

/**
 * Expands a short name ("H200") to the driver's name. An ambiguous name means the common variant, which is printed; a
 * name without data sheet is unchanged.
 */
export function driverName(name: string, measured: GpuRoofline | null = null): string {
  const givenName = name.trim();
  if (measured?.gpus.some(({ name }) => name === givenName)) return givenName;
  const found = findGpuSheet(givenName);
  if (Array.isArray(found)) return givenName;
  const chosen = chosenGpuWords(givenName, found);
  if (chosen !== null) notify(`--gpu ${chosen}`);
  return found.name;
}

async function firstStored<T>(
  sessions: readonly Session[],
  read: (session: Session) => Promise<T | null>,
): Promise<T | null> {
  for (const session of sessions) {
    const found = await read(session);
    if (found !== null) return found;
  }
  return null;
}

const hasGpu = ({ gpus }: GpuRoofline, name: string): boolean =>
  gpus.some((gpu) => gpu.name === name && gpu.scope === 'full');

/** Rooflines of a GPU of this name from the newest saved session that has them. */
async function findMeasured(name: string): Promise<GpuRoofline | null> {
  for (const { id, folder } of sessionFolders(homeFolders()).toReversed()) {
    try {
      if (!hasSubject(readManifest(folder, id).data, 'roofline')) continue;
      const found = await readStoredGpuRoofline(await openSession(id));
      if (found !== null && hasGpu(found, name)) return found;
    } catch {
      // Skip damaged sessions; session list reports them.
    }
  }
  return null;
}

async function readCachedRoofline(): Promise<GpuRoofline | null> {
  const { cachedGpuRoofline } = await import('../capture/roofline/cache.js');
  return (await cachedGpuRoofline(homeFolders().cache))?.roofline ?? null;
}

/** Takes about twenty seconds if no roofline of this CPU is cached. */
async function cpuRoofs(
  options: PredictOptions,
  roofline: MachineRoofline | null,
): Promise<{ roofs: DeviceRoofs; issues: Issue[] }> {
  if (roofline) return { roofs: roofsOfCpu(roofline), issues: [] };
  const { rooflineIssues } = await import('../capture/onnx/machine-roofline.js');
  const { rooflineWithProgress: machineRoofs } = await import('./machine-roofs.js');
  const { defaultThreads } = await import('../engines/onnx/decoder.js');
  const { detectCpu } = await import('../hardware/cpu.js');
  const home = ensureWritable();
  const measured = await measureWithProgress(options, (signal, progress) =>
    machineRoofs(progress, {
      threads: options.threads ?? defaultThreads(detectCpu().usableCores),
      cacheDir: home.cache,
      fresh: false,
      signal,
    }),
  );
  return { roofs: roofsOfCpu(measured.roofline), issues: rooflineIssues(measured) };
}

/** A file of `roofline --json`, or a session with a measured roofline. */
async function readRoofs(source: string): Promise<DeviceRooflines> {
  const file = await stat(source).catch(() => null);
  if (file === null || !file.isFile()) {
    const session = await openSession(source);
    const found = { gpu: await readStoredGpuRoofline(session), cpu: await readStoredRoofline(session) };
    if (found.gpu || found.cpu) return found;
    throw noRoofs(source, 'The session has no roofline.');
  }
  let data: Record<string, unknown>;
  try {
    data = (parseJson(await readFile(source, 'utf8')) as { data: Record<string, unknown> }).data;
  } catch {
    throw noRoofs(source, 'The file is not JSON.');
  }
  const gpu = gpuRooflineSchema.safeParse(data?.['gpu'] ?? data);
  const machine = machineRooflineSchema.safeParse(data?.['roofline'] ?? data);
  if (!gpu.success && !machine.success) throw noRoofs(source, 'The file has no roofline document.');
  return { gpu: gpu.success ? gpu.data : null, cpu: machine.success ? machine.data : null };
}

function noRoofs(source: string, why: string): InferscopeError {
  return new InferscopeError('E_USAGE', {
    what: `no measured roofs in ${source}`,
    why,
    fix: 'Measure one on the machine with the GPU: inferscope roofline --json > roofline.json',
  });
}

import { InferscopeError } from '../../model/errors.js';
import type { Issue } from '../../model/document.js';
import { launchedRank } from '../../model/launched-rank.js';
import { secretsOfEnvironment } from '../../model/redaction.js';
import type { CaptureFacts, Fact } from '../importer.js';
import type { SqliteValue } from './sqlite-record.js';
import { cudaVersion } from '../../model/cuda-version.js';

/** Major version of the export schema that this reader supports (META_DATA_EXPORT); older ones are read too. */
const knownMajor = 3;

/** Rows of a small table; empty if the capture does not have it. */
export type ReadTable = (table: string, columns: readonly string[]) => Promise<SqliteValue[][]>;

/**
 * Facts that a capture records about itself. META_DATA_CAPTURE and TARGET_INFO_SYSTEM_ENV also contain the program's
 * environment, including tokens, so only the rows named here are stored (see `nsysSecrets`).
 * @throws E_TRACE_NEWER
 */
export async function readNsysFacts(path: string, read: ReadTable): Promise<CaptureFacts> {
  const exportInfo = new Map(
    [
      ...(await read('EXPORT_META_DATA', ['name', 'value'])),
      ...(await read('META_DATA_EXPORT', ['name', 'value'])),
    ].map(([name, value]) => [name, textOf(value)]),
  );
  const schema = exportInfo.get('EXPORT_SCHEMA_VERSION') ?? null;
  const version = exportInfo.get('EXPORT_PRODUCT_VERSION') ?? null;
  refuseNewer(path, schema, version);

  const environment = new Map(
    (await read('TARGET_INFO_SYSTEM_ENV', ['name', 'value']))
      .filter(
        ([name]) => name === 'NvDriverVersion' || name === 'CudaDriverVersion' || name === 'OsDescription',
      )
      .map(([name, value]) => [name, textOf(value)]),
  );
  const [start] = await read('TARGET_INFO_SESSION_START_TIME', ['utcEpochNs']);
  const epoch = start?.[0];
  return {
    tool: { name: 'nsys', version },
    realtime_zero_ns: typeof epoch === 'bigint' || Number.isInteger(epoch) ? BigInt(epoch as number) : null,
    command: await readCommand(read),
    hardware: { ...(await readHardware(read)), ...(await readNetworkAdapters(read)) },
    software: {
      nvidia_driver: environment.get('NvDriverVersion') ?? null,
      cuda_driver: cudaVersionOf(environment.get('CudaDriverVersion')),
      os: environment.get('OsDescription') ?? null,
      nsys_export_schema: schema,
    },
    ...(await readRankFacts(read)),
    purpose: 'profiled',
  };
}

/**
 * A report contains the program's environment: `PROCESS_0:ENVIRONMENT_VARIABLE` with `HF_TOKEN="…"`, and in reports of
 * 2025 all of it as `A=b;C=d` under DeviceEnvironment.
 */
export const nsysSecrets = async (read: ReadTable): Promise<string[]> =>
  secretsOfEnvironment(await readEnvironment(read));

async function readRankFacts(read: ReadTable): Promise<Pick<CaptureFacts, 'rank' | 'world_size'>> {
  const launchRank = launchedRank(Object.fromEntries(await readEnvironment(read)));
  if (launchRank === null) return {};
  const { rank, worldSize } = launchRank;
  return { rank, ...(worldSize !== null && { world_size: worldSize }) };
}

async function readEnvironment(read: ReadTable): Promise<(readonly [name: string, value: string])[]> {
  const processEnvironment = (await read('META_DATA_CAPTURE', ['name', 'value']))
    .filter(([name]) => String(name).endsWith(':ENVIRONMENT_VARIABLE'))
    .map(([, value]) => String(value));
  const deviceEnvironment = (await read('TARGET_INFO_SYSTEM_ENV', ['name', 'value']))
    .filter(([name]) => name === 'DeviceEnvironment')
    .flatMap(([, value]) => String(value).split(/;(?=[A-Za-z_]\w*=)/));
  return [...processEnvironment, ...deviceEnvironment].flatMap((text) => {
    const [, name, value] = /^([A-Za-z_]\w*)=(.*)$/s.exec(text) ?? [];
    return name === undefined ? [] : [[name, value!.replace(/^"(.*)"$/s, '$1')] as const];
  });
}

function refuseNewer(path: string, schema: string | null, version: string | null): void {
  const major = Number(schema?.split('.')[0]);
  if (!(major > knownMajor)) return;
  throw new InferscopeError('E_TRACE_NEWER', {
    what: `cannot read the Nsight Systems capture ${path}`,
    why: `Its schema is ${schema} (nsys ${version ?? 'of unknown version'}), and this inferscope supports schemas up to ${knownMajor}.x.`,
    fix: 'Update inferscope, or export the report with an older nsys (2025 or 2026).',
  });
}

async function readCommand(read: ReadTable): Promise<string[] | null> {
  const rows = await read('META_DATA_CAPTURE', ['name', 'value']);
  const program = rows.find(([name]) => name === 'PROCESS_0:COMMAND')?.[1];
  if (typeof program !== 'string') return null;
  const argumentsByPlace = rows.flatMap(([name, value]) => {
    const match = /^PROCESS_0:ARGUMENT_(\d+)$/.exec(String(name));
    return match && typeof value === 'string' ? [{ place: Number(match[1]), value }] : [];
  });
  return [program, ...argumentsByPlace.sort((a, b) => a.place - b.place).map(({ value }) => value)];
}

async function readHardware(read: ReadTable): Promise<Record<string, Fact>> {
  const gpus = await read('TARGET_INFO_GPU', [
    'name',
    'totalMemory',
    'memoryBandwidth',
    'smCount',
    'computeMajor',
    'computeMinor',
    'clockRate',
    'l2CacheSize',
  ]);
  const [first] = gpus;
  if (!first) return {};
  const [name, memory, bandwidth, sms, major, minor, clock, l2] = first;
  return {
    gpu_name: textOf(name),
    gpu_count: gpus.length,
    gpu_memory_bytes: positiveOf(memory),
    // nsys's bandwidth counts both edges of the memory clock on all architectures seen: H200 4.81e12, A100 1.555e12 B/s.
    gpu_memory_bandwidth_bytes_per_s: positiveOf(bandwidth),
    gpu_sm_count: positiveOf(sms),
    gpu_compute_capability: positiveOf(major) === null ? null : `${major}.${minor ?? 0}`,
    gpu_clock_hz: positiveOf(clock),
    gpu_l2_cache_bytes: positiveOf(l2),
  };
}

/** PCI ids of the adapters, repeated for each adapter of the host: "15b3:1021 15b3:1021". */
async function readNetworkAdapters(read: ReadTable): Promise<Record<string, Fact>> {
  const hex = (id: SqliteValue | undefined) => Number(id).toString(16).padStart(4, '0');
  const rows = await read('TARGET_INFO_NIC_INFO', ['nicId', 'vendorId', 'deviceId']);
  const ids = new Map(rows.map(([nic, vendor, device]) => [Number(nic), `${hex(vendor)}:${hex(device)}`]));
  return ids.size === 0 ? {} : { network_adapters: [...ids.values()].toSorted().join(' ') };
}

function cudaVersionOf(value: string | null | undefined): string | null {
  const code = Number(value);
  return value && code >= 1000 ? cudaVersion(code) : null;
}

function textOf(value: SqliteValue | undefined): string | null {
  return value === null || value === undefined || value === '' ? null : String(value);
}

/** Null if the file has none or an impossible one. */
function positiveOf(value: SqliteValue | undefined): number | null {
  return (typeof value === 'number' || typeof value === 'bigint') && value > 0 ? Number(value) : null;
}

/** "Not all CUDA events might have been collected." and the like, verbatim; nothing else from its log. */
export async function readCollectionIssues(read: ReadTable): Promise<Issue[]> {
  const texts = new Set<string>();
  for (const [message] of await read('DIAGNOSTIC_EVENT', ['text'])) {
    const match = /^Not all [\w ]{1,40} events might have been collected\.?$/.exec(String(message));
    if (match) texts.add(match[0]);
  }
  return [...texts].map((message) => ({
    code: 'events_not_collected',
    severity: 'info' as const,
    text: `Nsight Systems reports: ${message}`,
  }));
}

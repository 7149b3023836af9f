import { installCommand } from '../../model/installation.js';
import type { DoctorFacts, FolderFacts, PackageCheck } from './facts.js';
import { type Verdict, rowsOf } from './row.js';
import { formatSetting, formatBytes } from '../../vocabulary/format.js';

const { ok, warning, missing } = rowsOf('machine');

/** Space for the 110 M parameter model (0.5 GB), its traces and a few sessions. */
const diskNeededBytes = 2 * 2 ** 30;
/** The 24 M parameter model profiles in 0.3 GiB; below this the system would swap under it. */
const memoryWantedBytes = 2 ** 30;
const nodeNeeded = [20, 19] as const;

export function judgeMachine(facts: DoctorFacts): Verdict[] {
  return [
    node(facts.nodeVersion),
    nativePackage('engine', 'Engine', 'onnxruntime-node', facts.engine),
    nativePackage('duckdb', 'DuckDB', '@duckdb/node-api', facts.duckdb),
    folder('home', 'Session folder', 'INFERSCOPE_HOME=/a/folder', facts.home),
    folder('tmp', 'Temporary folder', 'TMPDIR=/tmp', facts.temporary),
    disk(facts),
    memory(facts),
    cpu(facts),
  ];
}

function node(version: string): Verdict {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const enough = major > nodeNeeded[0] || (major === nodeNeeded[0] && minor >= nodeNeeded[1]);
  return enough
    ? ok('node', 'Node', version)
    : missing(
        'node',
        'Node',
        `${version} is too old`,
        `Install Node ${nodeNeeded.join('.')} or newer: nodejs.org`,
      );
}

function nativePackage(id: string, label: string, name: string, check: PackageCheck): Verdict {
  if (check.works) return ok(id, label, `${name} ${check.version}, ${check.detail}`);
  if (check.version === null) {
    return missing(id, label, `${name} is not installed`, installCommand(name));
  }
  const found = `${name} ${check.version} does not work: ${check.detail}`;
  return missing(
    id,
    label,
    found,
    `npm rebuild ${name}; its binaries need glibc (not Alpine) on x64 or arm64`,
  );
}

function folder(
  id: string,
  label: string,
  variable: string,
  { path, writable, reason }: FolderFacts,
): Verdict {
  return writable
    ? ok(id, label, path)
    : missing(id, label, `${path}: ${reason}`, `export ${variable}, or another folder that you may write to`);
}

function disk({ home: { freeBytes } }: DoctorFacts): Verdict {
  const fix = 'Free some space, or store sessions elsewhere: export INFERSCOPE_HOME=/a/larger/disk';
  if (freeBytes === null) return missing('disk', 'Free disk', 'unknown', fix);
  return freeBytes >= diskNeededBytes
    ? ok('disk', 'Free disk', formatBytes(freeBytes))
    : missing('disk', 'Free disk', `${formatBytes(freeBytes)}, ${formatBytes(diskNeededBytes)} wanted`, fix);
}

function memory({ cpu: { memoryTotalBytes, memoryLimitBytes }, memoryAvailableBytes }: DoctorFacts): Verdict {
  const limit = memoryLimitBytes !== null && memoryLimitBytes < memoryTotalBytes ? memoryLimitBytes : null;
  const available = Math.min(memoryAvailableBytes ?? Infinity, limit ?? Infinity, memoryTotalBytes);
  const found = `${formatBytes(memoryTotalBytes)}, ${formatBytes(available)} available${limit ? `, container limit ${formatBytes(limit)}` : ''}`;
  return available >= memoryWantedBytes
    ? ok('memory', 'Memory', found)
    : warning(
        'memory',
        'Memory',
        found,
        'Close other programs, or raise the container limit (docker run --memory 4g)',
      );
}

function cpu({ cpu: chip }: DoctorFacts): Verdict {
  const isa = chip.isa;
  const sets = (['avx2', 'avx512', 'vnni', 'amx', 'neon'] as const).filter((name) => isa?.[name]);
  const { l2, l3 } = chip.caches;
  const description = [
    chip.model ?? chip.architecture,
    chip.virtualized ? `${chip.logicalCores} virtual cores` : `${chip.logicalCores} logical cores`,
    chip.quotaCores === null ? null : `container quota ${formatSetting(chip.quotaCores, 'cores')}`,
    sets.join(' ') || null,
    l2 ? `L2 ${formatBytes(l2.totalBytes)}` : null,
    l3 ? `L3 ${formatBytes(l3.totalBytes)}` : null,
  ]
    .filter((part) => part !== null)
    .join(', ');
  if (isa && !isa.avx2 && !isa.neon) {
    return warning(
      'cpu',
      'CPU',
      `${description}; neither AVX2 nor NEON`,
      'Results are valid but slow; use a newer CPU',
    );
  }
  return ok('cpu', 'CPU', description);
}

import { readFile, stat } from 'node:fs/promises';
import { type MemoryProfile, memoryProfileSchema, unwrapProfile } from '../model/documents/memory-profile.js';
import { messageOf } from '../model/errors.js';
import { impossibleSize } from '../model/memory-sizes.js';
import { parseJson } from '../model/parse-json.js';
import type { CaptureFacts, Importer, ImportOutcome } from './importer.js';
import { unreadableFile } from './trace-file-error.js';
import { formatBytes } from '../vocabulary/format.js';

/** Profiles have about 10 kB. */
const maxFileBytes = 16 * 2 ** 20;

/** The JSON file of `inferscope memory` (schema 2.0), or the document of a report around it. */
export const memoryProfileImporter: Importer = {
  name: 'memory-profile',
  keepsFile: true,
  sniff: (firstBytes) =>
    /^\s*\{/.test(firstBytes) &&
    /"schema_version"\s*:\s*"2[."]/.test(firstBytes) &&
    /"memory_measurements"\s*:/.test(firstBytes),
  async facts(path): Promise<CaptureFacts> {
    const {
      metadata,
      model_info: model,
      engine_metadata: engine,
      profiler_version,
    } = await readProfile(path);
    const started = Date.parse(metadata.timestamp);
    return {
      tool: { name: 'inferscope memory', version: profiler_version },
      realtime_zero_ns: Number.isFinite(started) ? BigInt(started) * 1_000_000n : null,
      command: null,
      hardware: { gpu_name: metadata.gpus[0]?.name ?? null, gpu_count: metadata.gpus.length },
      software: { model: model.name, engine: engine.engine_type, engine_version: engine.engine_version },
      purpose: 'results',
    };
  },
  async load(): Promise<ImportOutcome> {
    return { clock: { name: 'not recorded', resolution_ns: 1, error_bound_ns: null }, issues: [] };
  },
};

const unreadable = unreadableFile(
  'memory profile',
  'Give the file as `inferscope memory` wrote it. `memory compare` and `validate` also read profiles of other tools, which may lack fields.',
);

async function readProfile(path: string): Promise<MemoryProfile> {
  const { size } = await stat(path);
  if (size > maxFileBytes)
    throw unreadable(path, `It has ${formatBytes(size)}, far more than a memory profile.`);
  let json: unknown;
  try {
    json = parseJson(await readFile(path, 'utf8'));
  } catch (error) {
    throw unreadable(path, `It cannot be read as JSON: ${messageOf(error)}`, error);
  }
  const parsed = memoryProfileSchema.safeParse(unwrapProfile(json));
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const where = issue!.path.length > 0 ? `Its field ${issue!.path.join('.')}` : 'The file';
    throw unreadable(path, `${where}: ${issue!.message}.`);
  }
  const impossible = impossibleSize(parsed.data);
  if (impossible !== null) throw unreadable(path, impossible);
  return parsed.data;
}

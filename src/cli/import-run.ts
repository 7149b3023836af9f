import { captureName } from '../import/benchmark-results/aiperf-folder.js';
import type { Workload } from '../model/manifest.js';
import { attachGpuRoofline, attachRooflineFile, readRooflineFile } from './attach-roofline.js';
import { findModel } from '../engines/model-files/find-model.js';
import type { NamedModel } from '../llm/model-files.js';
import {
  type CaptureFile,
  importCaptures,
  type ImportedCaptures,
  type ImportOptions,
} from './import-captures.js';
import { startProgress } from './progress.js';
import { configuredStageNames } from './stage-names.js';
import {
  addToSession,
  type Recorded,
  type Recording,
  recordSession,
  type SavedSession,
} from '../record/record-session.js';
import { formatPercent } from '../vocabulary/format.js';

interface ImportRunOptions {
  session?: string;
  name?: string;
  tag: string[];
  model?: string;
  roofline?: string;
  raw: boolean;
  quiet?: boolean;
}

/** Options of `import --ranks`. */
export interface RanksOptions extends ImportRunOptions {
  resume?: boolean;
  /** Files imported at the same time; default: as many as cores and free memory allow, or as Slurm starts. */
  jobs?: number;
  /** Where files are imported; default: on this machine. */
  on?: 'local' | 'slurm';
  /** Further options of sbatch for all jobs, and for the one that merges, as typed in a shell. */
  sbatch?: string;
  sbatchMerge?: string;
}

/**
 * Files → session. Saves nothing when a file cannot be read or on Ctrl-C.
 * @throws E_FORMAT_UNKNOWN, E_TRACE_FILE, E_TRACE_NEWER, E_TOOL_MISSING, E_INTERRUPTED, E_DISK_FULL …
 */
export async function runImport(
  paths: string[],
  options: ImportRunOptions,
  signal: AbortSignal,
): Promise<string> {
  const progress = startProgress(options.quiet === true);
  const { model, roofline } = await statedOf(options);
  const stageNames = await configuredStageNames();
  const settings: ImportOptions = {
    stageNames,
    keepRaw: options.raw,
    signal,
    onProgress: (file, share) => progress.update(`reading ${file}`, formatPercent(share)),
  };
  const files = paths.map((path) => ({ path }));
  try {
    const { id } =
      options.session === undefined
        ? await newSession(namesOf(files), options, { model, roofline }, ({ files: session, redact }) =>
            importCaptures(session, files, { ...settings, redact }),
          )
        : await addToSession(options.session, ({ files: session, ...addition }) =>
            importCaptures(session, files, { ...settings, ...addition }),
          );
    progress.done('session saved', id);
    return id;
  } finally {
    progress.end();
  }
}

/** Options that describe the workload of a new session. */
interface Stated {
  model: NamedModel | null;
  roofline: { path: string; roofline: Awaited<ReturnType<typeof readRooflineFile>> } | null;
}

export async function statedOf({
  model,
  roofline: path,
}: Pick<ImportRunOptions, 'model' | 'roofline'>): Promise<Stated> {
  return {
    model: model === undefined ? null : await findModel(model),
    roofline: path === undefined ? null : { path, roofline: await readRooflineFile(path) },
  };
}

/** A new session of the captures that `read` imports, with the model and rooflines that the user stated. */
export async function newSession(
  names: { label: string; title: string },
  options: Pick<ImportRunOptions, 'name' | 'tag'>,
  { model, roofline }: Stated,
  read: (recording: Recording) => Promise<ImportedCaptures>,
): Promise<SavedSession> {
  const plan = {
    label: options.name ?? names.label,
    kind: 'import',
    name: options.name ?? null,
    tags: options.tag,
    doing: 'save the session',
  };
  return recordSession(plan, async (recording) => {
    const { files: session } = recording;
    const imported = await read(recording);
    const roofIssues = roofline
      ? await attachRooflineFile(session, imported.hardware, roofline)
      : await attachGpuRoofline(session, imported.hardware);
    const issues = [...imported.issues, ...roofIssues];
    return { ...recordedBy(imported, names.title, model), issues, result: {} };
  });
}

const namesOf = (files: readonly CaptureFile[]) => ({
  label: stemOf(files[0]!.path),
  title: [...new Set(files.map(({ path }) => captureName(path)))].join(', '),
});

function stemOf(path: string): string {
  return captureName(path).replace(
    /(\.(nsys-rep|sqlite|parquetdir|ncu-rep|jsonl|json|gz|csv|log|txt))+$/,
    '',
  );
}

function recordedBy(imported: ImportedCaptures, names: string, model: NamedModel | null): Recorded {
  const startedAt =
    imported.zeroRealtimeNs === null ? new Date() : new Date(Number(imported.zeroRealtimeNs / 1_000_000n));
  const tools = [...new Set(imported.captures.map(({ tool }) => tool.name))].join(', ');
  const what = model?.name ?? imported.model?.name ?? names;
  const device = imported.hardware['gpu_name'];
  return {
    title: `${what} · ${tools}${typeof device === 'string' ? ` · ${device}` : ''}`,
    status: 'complete',
    elsewhere: { startedAt },
    workload: workloadOf(imported, model),
    hardware: imported.hardware,
    software: imported.software,
    executions: imported.executions,
    captures: imported.captures,
  };
}

/** From the workload's record if there is one; --model takes precedence. */
export function workloadOf(
  { model: line, sizes }: Pick<ImportedCaptures, 'model' | 'sizes'>,
  named: NamedModel | null,
): Workload | null {
  if (!line && !named) return null;
  return {
    model: {
      name: named?.name ?? line!.name,
      config: named?.config ?? line!.config,
      dtype: line?.dtype ?? String(named?.config['torch_dtype'] ?? named?.config['dtype'] ?? 'unknown'),
      quantization: line?.quantization ?? null,
      weights: line?.weights ?? 'unknown',
      num_parameters: null,
      weight_bytes: line?.weight_bytes ?? null,
      ...(line?.facts && { facts: line.facts }),
      ...(line?.tensors && { tensors: line.tensors }),
    },
    engine: { name: line?.engine.name ?? 'unknown', version: line?.engine.version ?? null, options: {} },
    device: line?.device ?? 'cuda',
    threads: line?.threads ?? null,
    batch_size: sizes?.batch_size ?? null,
    input_len: sizes?.input_len ?? null,
    output_len: sizes?.output_len ?? null,
    tensor_parallel_size: line?.tensor_parallel_size ?? 1,
  };
}

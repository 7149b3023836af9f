import { captureName } from '../import/benchmark-results/aiperf-folder.js';
import type { Workload } from '../model/manifest.js';
import { attachGpuRoofline, attachRooflineFile, readRooflineFile } from './attach-roofline.js';
import { findModel } from '../engines/model-files/find-model.js';
import type { NamedModel } from '../llm/model-files.js';
import { importCaptures, type ImportedCaptures, type ImportOptions } from './import-captures.js';
import type { CaptureFile } from './recognize-file.js';
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
  const { model, roofline } = await readWorkloadOptions(options);
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
        ? await saveNewSession(namesOf(files), options, { model, roofline }, ({ files: session, redact }) =>
            importCaptures(session, files, { ...settings, redact }),
          )
        : await addToSession(options.session, async ({ files: session, ...addition }) => {
            const imported = await importCaptures(session, files, { ...settings, ...addition });
            return { ...imported, workload: workloadOf(imported, model) };
          });
    progress.done('session saved', id);
    return id;
  } finally {
    progress.end();
  }
}

/** Options that describe the workload of a new session. */
interface WorkloadOptions {
  model: NamedModel | null;
  roofline: { path: string; roofline: Awaited<ReturnType<typeof readRooflineFile>> } | null;
}

export async function readWorkloadOptions({
  model,
  roofline: path,
}: Pick<ImportRunOptions, 'model' | 'roofline'>): Promise<WorkloadOptions> {
  return {
    model: model === undefined ? null : await findModel(model),
    roofline: path === undefined ? null : { path, roofline: await readRooflineFile(path) },
  };
}

/** A new session of the captures that `read` imports, with the model and rooflines that the user stated. */
export async function saveNewSession(
  names: { label: string; title: string },
  options: Pick<ImportRunOptions, 'name' | 'tag'>,
  { model, roofline }: WorkloadOptions,
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
    return { ...recordedImport(imported, names.title, model), issues, result: {} };
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

function recordedImport(imported: ImportedCaptures, names: string, model: NamedModel | null): Recorded {
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
  { model: modelLine, sizes }: Pick<ImportedCaptures, 'model' | 'sizes'>,
  namedModel: NamedModel | null,
): Workload | null {
  if (!modelLine && !namedModel) return null;
  return {
    model: {
      name: namedModel?.name ?? modelLine!.name,
      config: namedModel?.config ?? modelLine!.config,
      dtype:
        modelLine?.dtype ??
        String(namedModel?.config['torch_dtype'] ?? namedModel?.config['dtype'] ?? 'unknown'),
      quantization: modelLine?.quantization ?? null,
      weights: modelLine?.weights ?? 'unknown',
      num_parameters: null,
      weight_bytes: modelLine?.weight_bytes ?? null,
      ...(modelLine?.facts && { facts: modelLine.facts }),
      ...(modelLine?.tensors && { tensors: modelLine.tensors }),
    },
    engine: {
      name: modelLine?.engine.name ?? 'unknown',
      version: modelLine?.engine.version ?? null,
      options: {},
    },
    device: modelLine?.device ?? 'cuda',
    threads: modelLine?.threads ?? null,
    batch_size: sizes?.batch_size ?? null,
    input_len: sizes?.input_len ?? null,
    output_len: sizes?.output_len ?? null,
    tensor_parallel_size: modelLine?.tensor_parallel_size ?? 1,
  };
}

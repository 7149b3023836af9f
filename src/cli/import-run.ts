import process from 'node:process';
import { basename } from 'node:path';
import type { Workload } from '../model/manifest.js';
import { redactText, secretsOfEnvironment } from '../model/redaction.js';
import { addCapture } from '../session/capture.js';
import { homeFolders } from '../session/home.js';
import { openSession } from '../session/open.js';
import { asStorageFailure } from '../session/storage-failure.js';
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
import { type Recorded, recordSession } from '../record/record-session.js';

export interface ImportRunOptions {
  session?: string;
  name?: string;
  tag: string[];
  model?: string;
  roofline?: string;
  raw: boolean;
  quiet?: boolean;
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
  const model = options.model === undefined ? null : await findModel(options.model);
  const roofline = options.roofline === undefined ? null : await rooflineOf(options.roofline);
  const stageNames = await configuredStageNames();
  const secrets = secretsOfEnvironment(process.env);
  const settings: ImportOptions = {
    stageNames,
    redact: (text) => redactText(text, secrets),
    keepRaw: options.raw,
    signal,
    onProgress: (file, share) => progress.update(`reading ${file}`, `${Math.round(share * 100)} %`),
  };
  const files = paths.map((path) => ({ path }));
  try {
    const id =
      options.session === undefined
        ? await intoNew(files, settings, options, { model, roofline })
        : await intoKept(options.session, files, settings);
    progress.done('session saved', id);
    return id;
  } catch (error) {
    throw asStorageFailure(error, { path: homeFolders().root, doing: 'save the session', home: true });
  } finally {
    progress.end();
  }
}

async function rooflineOf(path: string) {
  return { path, roofline: await readRooflineFile(path) };
}

async function intoNew(
  files: CaptureFile[],
  settings: ImportOptions,
  options: ImportRunOptions,
  { model, roofline }: { model: NamedModel | null; roofline: Awaited<ReturnType<typeof rooflineOf>> | null },
): Promise<string> {
  const plan = {
    label: options.name ?? stemOf(files[0]!.path),
    kind: 'import',
    name: options.name ?? null,
    tags: options.tag,
    doing: 'save the session',
  };
  const { id } = await recordSession(plan, async ({ files: session }) => {
    const imported = await importCaptures(session, files, settings);
    const roofIssues = roofline
      ? await attachRooflineFile(session, imported.hardware, roofline)
      : await attachGpuRoofline(session, imported.hardware);
    const issues = [...imported.issues, ...roofIssues];
    return { ...recordedBy(imported, files, model), issues, found: {} };
  });
  return id;
}

async function intoKept(selector: string, files: CaptureFile[], settings: ImportOptions): Promise<string> {
  const session = await openSession(selector);
  const writer = await addCapture(session);
  try {
    const taken = session.manifest.captures.map((capture) => capture.capture_id);
    const realtime_ns = BigInt(Date.parse(session.manifest.started_at)) * 1_000_000n;
    const zero = { realtime_ns, monotonic_ns: null };
    return (await writer.finish(await importCaptures(writer, files, { ...settings, taken, zero }))).id;
  } catch (error) {
    await writer.abandon();
    throw error;
  }
}

function stemOf(path: string): string {
  return basename(path).replace(/(\.(nsys-rep|sqlite|parquetdir|ncu-rep|json|gz|csv|log|txt))+$/, '');
}

function recordedBy(imported: ImportedCaptures, files: CaptureFile[], model: NamedModel | null): Recorded {
  const startedAt =
    imported.zeroRealtimeNs === null ? new Date() : new Date(Number(imported.zeroRealtimeNs / 1_000_000n));
  const tools = [...new Set(imported.captures.map(({ tool }) => tool.name))].join(', ');
  const what = model?.name ?? imported.model?.name ?? files.map(({ path }) => basename(path)).join(', ');
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

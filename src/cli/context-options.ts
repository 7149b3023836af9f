import { existsSync } from 'node:fs';
import type { Command } from 'commander';
import { givenClasses, type OpClass } from '../model/classes.js';
import type { Context } from '../model/context.js';
import { type DType, parseDType } from '../model/dtype.js';
import { InferscopeError } from '../model/errors.js';
import { wholeNumberParser } from './numbers.js';

/** What the user states about a session's workload; saved with the session. */
export interface ContextOptions {
  model?: string;
  dtype?: DType;
  batchSize?: number;
  inputLen?: number;
  roofline?: string;
  kernelClass?: Record<string, OpClass>;
}

/** Adds `--model --dtype --batch-size --input-len --roofline --kernel-class` unless the command has them already. */
export function defineContextOptions(command: Command): Command {
  const definedFlags = new Set(command.options.map(({ long }) => long));
  if (!definedFlags.has('--model'))
    command.option(
      '--model <name>',
      'model that ran: a preset, config.json, or its folder (replaces the recorded one)',
    );
  if (!definedFlags.has('--roofline'))
    command.option(
      '--roofline <file>',
      'measured peaks of the recorded GPU: output of inferscope roofline --json, or a session that has them',
    );
  return command
    .option('--dtype <dtype>', 'dtype that the model computed in (replaces the recorded one)', parseDType)
    .option(
      '--batch-size <n>',
      'sequences per step (replaces the recorded number)',
      wholeNumberParser('--batch-size', { min: 1, example: 8 }),
    )
    .option(
      '--input-len <n>',
      'prompt tokens per sequence (replaces the recorded number)',
      wholeNumberParser('--input-len', { min: 1, example: 128 }),
    )
    .option(
      '--kernel-class <kernel=class>',
      `class of an unknown kernel by its short name, repeatable: ${givenClasses.join(', ')}`,
      (word: string, before: Record<string, OpClass> = {}) => ({ ...before, ...parseKernelClass(word) }),
    );
}

function parseKernelClass(word: string): Record<string, OpClass> {
  const end = word.lastIndexOf('=');
  const name = givenClasses.find((given) => given === word.slice(end + 1));
  if (end > 0 && name) return { [word.slice(0, end)]: name };
  throw new InferscopeError('E_USAGE', {
    what: `invalid --kernel-class: ${word}`,
    why: `It takes the short name of a kernel and its class: ${givenClasses.join(', ')}.`,
    fix: 'For example: --kernel-class my_attention_kernel=attention',
  });
}

/** Reads the given options. @throws E_USAGE, E_MODEL_NOT_FOUND …, E_RECORD_FILE, E_SESSION_NOT_FOUND */
export async function readContext(options: ContextOptions): Promise<Context> {
  const { model, dtype, batchSize, inputLen, roofline, kernelClass } = options;
  return {
    ...(model !== undefined && { model: await findModelNamed(model) }),
    ...(dtype !== undefined && { dtype }),
    ...(batchSize !== undefined && { batch_size: batchSize }),
    ...(inputLen !== undefined && { input_len: inputLen }),
    ...(kernelClass !== undefined && { kernel_classes: kernelClass }),
    ...(roofline !== undefined && { roofline: await roofsOf(roofline) }),
  };
}

/**
 * Saves the given context with a session, so that every later analysis uses it.
 * @param clear removes earlier context first
 * @returns whether anything changed
 * @throws E_USAGE for peaks of a GPU that the session was not recorded on
 */
export async function saveContext(selector: string, context: Context, clear = false): Promise<boolean> {
  if (Object.keys(context).length === 0 && !clear) return false;
  const [{ openSession }, { giveContext }] = await Promise.all([
    import('../session/open.js'),
    import('../session/edit.js'),
  ]);
  const session = await openSession(selector);
  if (context.roofline) requireGpu(context.roofline, session.manifest.hardware['gpu_name']);
  await giveContext(session, context, clear);
  return true;
}

function requireGpu({ gpus }: NonNullable<Context['roofline']>, gpu: unknown): void {
  if (gpus.some(({ name }) => name === gpu)) return;
  throw new InferscopeError('E_USAGE', {
    what: `--roofline has no peaks of ${typeof gpu === 'string' ? gpu : 'this session, which names no GPU'}`,
    why: `They are of ${[...new Set(gpus.map(({ name }) => name))].join(', ')}.`,
    fix: 'Measure the GPU that was recorded, on its machine: inferscope roofline --json > roofline.json',
  });
}

async function findModelNamed(spec: string) {
  const { findModel } = await import('../engines/model-files/find-model.js');
  const { name, config } = await findModel(spec);
  return { name, config };
}

async function roofsOf(fileOrSession: string) {
  if (existsSync(fileOrSession)) {
    const { readRooflineFile } = await import('./attach-roofline.js');
    return (await readRooflineFile(fileOrSession)).roofline;
  }
  const [{ openSession }, { readStoredGpuRoofline }] = await Promise.all([
    import('../session/open.js'),
    import('../facts/roofs.js'),
  ]);
  const found = await readStoredGpuRoofline(await openSession(fileOrSession));
  if (found) return found;
  throw new InferscopeError('E_USAGE', {
    what: `session ${fileOrSession} has no measured roofline of a GPU`,
    why: '--roofline takes the output of inferscope roofline --json, or a session that has such peaks.',
    fix: 'Measure the GPU that was recorded, on its machine: inferscope roofline --json > roofline.json',
  });
}

import { gpuSheet } from '../../hardware/gpu-peaks.js';
import { decoderModel } from '../../facts/model-work.js';
import { deviceOf } from '../../facts/device.js';
import { allocatableGib, allocatableShare } from '../../llm/memory-constants.js';
import { estimateMemory } from '../../llm/memory-estimate.js';
import { largestFit } from '../../llm/memory-fit.js';
import { knownEngine, type MemoryRequest } from '../../llm/memory-request.js';
import { findPreset } from '../../llm/presets.js';
import { componentWord } from './answer-memory.js';
import { type QuestionWorkload, requestedChanges } from './requested-changes.js';
import {
  notKnown,
  partFrom,
  type StoredFacts,
  type StoredPart,
  known,
  type TopicAnswer,
} from './stored-facts.js';
import type { GpuSheet } from '../../hardware/gpu-sheet.js';
import { formatCount, formatGb, plural } from '../../vocabulary/format.js';
import { lengthWords } from '../../vocabulary/workload.js';
import { weightFormatLabel } from '../../vocabulary/weight-formats.js';

interface GpuMemory {
  name: string;
  bytes: number;
}

/** "Does it fit on an A100?", "what is the largest batch that fits?": the memory estimate for the session's model. */
export function whatFits(facts: StoredFacts, wanted: QuestionWorkload): TopicAnswer {
  const { workload } = facts.session.manifest;
  const model = workload ? decoderModel(workload) : null;
  if (!workload || model === null || 'reason' in model) {
    const why = model && 'reason' in model ? model.reason.text : 'the session does not record what it ran';
    return notKnown(
      `Whether it fits is not known: ${why}.`,
      'inferscope estimate --model <model> --gpu <gpu> --batch-size 1,8,32',
    );
  }
  const gpuMemories = gpuMemoriesOf(facts);
  if (gpuMemories.length === 0) {
    return notKnown(
      'Whether it fits is not known: the question names no GPU, and the session has no known GPU.',
      'inferscope estimate --model <model> --gpu <gpu> --batch-size 1,8,32',
    );
  }
  const request = requestOf(facts, wanted);
  const name = workload.model?.name ?? 'the model';
  const size = `batch ${request.batchSize}, ${lengthWords(request.inputLen, request.outputLen)}`;
  const stored = `${weightFormatLabel(model.storage.weights.name)} weights`;
  const gpus = request.parallel?.tensor ?? 1;
  const onEach = gpus === 1 ? '' : `each of ${gpus} × `;
  const part = (text: string, rows = 1) =>
    partFrom('estimate', text, rows, commandOf(name, gpuMemories, request));
  const parts = gpuMemories.map(({ name: gpu, bytes }): StoredPart => {
    const onGpu = { ...request, storage: model.storage, gpu: { name: gpu, totalBytes: bytes } };
    const estimate = estimateMemory(model.architecture, onGpu);
    const fit = largestFit(model.architecture, { ...onGpu, reserve: 'share' });
    const word = facts.question.isYesNo ? (estimate.holdsBatch ? 'Yes: ' : 'No: ') : '';
    const { batchSize: batch, contextTokens: tokens } = fit;
    const most = tokens === model.architecture.maxPositions ? 'its maximum of ' : '';
    const roomText =
      estimate.holdsBatch && batch !== null && tokens !== null
        ? `; there is room for a batch of ${formatCount(batch)} of that length, or at batch ${request.batchSize} for ${most}${plural(tokens, 'token')} per sequence`
        : '';
    return part(
      `${word}${name} (${stored}, ${size}) needs ${formatGb(estimate.neededGpuBytes)} of the ${formatGb(bytes)} of ${onEach}${gpu}: it ${estimate.holdsBatch ? 'fits' : 'does not fit'}${roomText}.`,
    );
  });
  const estimateWithoutGpu = estimateMemory(model.architecture, { ...request, storage: model.storage });
  const lines = estimateWithoutGpu.lines
    .filter(({ bytes }) => bytes >= 1e6)
    .map(({ component, bytes }) => `- ${componentWord(component)}: ${formatGb(bytes)}`);
  return known(parts[0]!, [
    ...parts.slice(1),
    part(`By component${gpus === 1 ? '' : `, on all ${gpus} GPUs`}:\n${lines.join('\n')}`, lines.length),
  ]);
}

/** The session's sizes with the changes in the question. */
function requestOf(facts: StoredFacts, wanted: QuestionWorkload): Omit<MemoryRequest, 'storage'> {
  const { workload } = facts.session.manifest;
  // "Does batch 64 fit?" is read as a change, although it is not hypothetical.
  const changes = requestedChanges(`what if ${facts.question.text}`, wanted)?.alternatives.flat() ?? [];
  const number = (word: string) =>
    Number(changes.find((change) => change.startsWith(`${word}=`))?.slice(word.length + 1)) || null;
  return {
    engine: knownEngine(workload!.engine.name) ?? 'transformers',
    batchSize: number('batch-size') ?? workload!.batch_size ?? 1,
    inputLen: number('context-len') ?? workload!.input_len ?? 512,
    outputLen: workload!.output_len ?? 128,
    parallel: { tensor: workload!.tensor_parallel_size },
  };
}

/** Memory of each named GPU, each size once; else that of the session's GPU. */
function gpuMemoriesOf({ question, session }: StoredFacts): GpuMemory[] {
  const deviceName = deviceOf(session.manifest).name;
  const names = question.gpus.length > 0 ? question.gpus : deviceName === null ? [] : [deviceName];
  const sheets = names.flatMap((name) => {
    const sheet = gpuSheet(name);
    return sheet ? [{ name, sheet }] : [];
  });
  const bySize = new Map<string, (typeof sheets)[number]>();
  for (const entry of sheets) {
    const size = `${family(entry.name)} ${entry.sheet.memoryGb}`;
    if (!bySize.has(size)) bySize.set(size, entry);
  }
  return [...bySize.values()].slice(0, 3).map(({ name, sheet }) => ({ name, bytes: bytesOf(name, sheet) }));
}

const family = (name: string): string => /\b[A-Z]{1,3}\d+[A-Z]{0,2}\b|\b\d{4}\b/.exec(name)?.[0] ?? name;

function bytesOf(name: string, { names, memoryGb }: GpuSheet): number {
  const known = [name, ...names].map((alias) => allocatableGib[alias]).find((gib) => gib !== undefined);
  return Math.round(2 ** 30 * (known ?? memoryGb * allocatableShare));
}

/** The equivalent command line; a program's own model has no name that the command knows. */
function commandOf(
  model: string,
  gpuMemories: readonly GpuMemory[],
  request: Omit<MemoryRequest, 'storage'>,
): string {
  const quoted = (text: string) => (/^[\w./-]+$/.test(text) ? text : `"${text}"`);
  const sizes = `--batch-size ${request.batchSize} --input-len ${request.inputLen} --output-len ${request.outputLen}`;
  const gpus = request.parallel?.tensor ?? 1;
  const parallel = gpus === 1 ? '' : ` --tensor-parallel-size ${gpus}`;
  const isKnown = model.includes('/') || findPreset(model) !== null;
  return `inferscope estimate --model ${isKnown ? quoted(model) : '<model>'} --gpu ${quoted(gpuMemories[0]!.name)} ${sizes}${parallel}`;
}

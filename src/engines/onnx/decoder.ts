import { readdir } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { basename, dirname, join } from 'node:path';
import type { InferenceSession, Tensor } from 'onnxruntime-node';
import { monotonicNs } from '../../model/clock.js';
import { InferscopeError, messageOf } from '../../model/errors.js';
import { decoderSignature } from './decoder-signature.js';
import { cacheGrowing, cacheInPlace, type CacheMemory, type KvCache } from './kv-cache.js';
import type { OnnxModel } from './onnx-model.js';
import { cpuSession, loadOnnxRuntime, type OnnxRuntime } from './runtime.js';
import { plural, formatCount } from '../../vocabulary/format.js';

interface DecoderOptions {
  /** Compute threads, including the calling one; see defaultThreads. */
  threads: number;
  /** Maximum tokens of a sequence, prompt and output together; the KV cache of a written model has this size. */
  contextLen: number;
  /** Path prefix of the operator trace; if set, the runtime profiles every call (a few µs per operator). */
  profilePrefix?: string;
  /** Enabled graph optimizations of the runtime; default: all. */
  graphOptimization?: 'disabled' | 'basic' | 'extended' | 'all';
}

interface StepResult {
  /** [batch, vocab], logits of the last position; valid until the next call. */
  logits: Float32Array;
  /** [batch, sequence, vocab] if the model computes every position of a call, else null. */
  allLogits: Float32Array | null;
  /** CLOCK_MONOTONIC before input preparation and after the outputs, ns. */
  start_ns: number;
  end_ns: number;
}

/** A loaded model with one KV cache. Calls run one at a time and block the event loop while the runtime computes. */
export interface Decoder {
  /**
   * Allocates memory for contexts of another shape, outside the timed region. In-place caches of all shapes share one
   * memory of the largest size; calls touch its pages first.
   * @throws E_OUT_OF_MEMORY
   */
  reserve(batchSize: number, contextLen: number): void;
  /** One sequence of token ids each, of equal length; starts a new context. */
  prefill(sequences: readonly ArrayLike<number>[]): Promise<StepResult>;
  /** One next token id per sequence. */
  decode(tokens: ArrayLike<number>): Promise<StepResult>;
  /** Bytes of keys and values in the cache (float32, all layers, all sequences). */
  kvCacheBytes(): number;
  /** Drops the context and frees the cache. */
  reset(): void;
  /**
   * Writes the operator trace and returns its path.
   * @throws E_WORKLOAD_FAILED if profiling was off
   */
  endProfiling(): Promise<string>;
  release(): Promise<void>;
}

/**
 * Leaves one core free for the sampling process and the rest of the machine, because ONNX Runtime's workers spin: with
 * more of them than free cores a decode step slowed from 5.5 ms (2 threads) to 18 (3) and 34 (4) on a 2-core machine.
 * With one core busy elsewhere 2 threads took 18 ms and one 8 ms. On an idle machine all cores help: prefill 97 ms on
 * one, 53 on both (24 M parameters).
 */
export function defaultThreads(cores = availableParallelism()): number {
  return Math.max(1, cores - 1);
}

/**
 * Loads a model and returns its decoder.
 * @throws E_ENGINE_MISSING, E_MODEL_FILE (the runtime cannot read it), E_MODEL_ARCHITECTURE (not a decoder with a KV
 * cache), E_MODEL_CONFIG (it lacks a size that the file leaves open), E_DTYPE (the cache is not float32), E_LENGTHS (contextLen exceeds the model), E_OUT_OF_MEMORY
 */
export async function openDecoder(model: OnnxModel, options: DecoderOptions): Promise<Decoder> {
  const { contextLen } = options;
  if (model.maxContext !== null && contextLen > model.maxContext) {
    throw new InferscopeError('E_LENGTHS', {
      what: `${model.name} cannot hold a context of ${plural(contextLen, 'token')}`,
      why: `Its longest context is ${plural(model.maxContext, 'token')}, prompt and output together.`,
      fix: `Lower --input-len or --output-len so that they add up to ${model.maxContext} or less.`,
    });
  }
  const ort = await loadOnnxRuntime();
  const session = await createSession(ort, model, options);
  try {
    return decoderOf(ort, session, model, options);
  } catch (error) {
    await session.release();
    throw error;
  }
}

async function createSession(
  ort: OnnxRuntime,
  model: OnnxModel,
  { threads, profilePrefix, graphOptimization = 'all' }: DecoderOptions,
): Promise<InferenceSession> {
  try {
    return await ort.InferenceSession.create(model.modelPath, {
      ...cpuSession(threads),
      graphOptimizationLevel: graphOptimization,
      // The arena costs no time and is on in clean and profiled runs, so that they are equal. Without it the trace has
      // no memory figures.
      enableCpuMemArena: true,
      enableMemPattern: true,
      enableProfiling: profilePrefix !== undefined,
      ...(profilePrefix === undefined ? {} : { profileFilePrefix: profilePrefix }),
    });
  } catch (error) {
    throw runtimeError(error, {
      code: 'E_MODEL_FILE',
      what: `the runtime cannot load ${model.modelPath}`,
      fix: 'Export the model again (optimum-cli export onnx), or use --model llama-24m to see whether the engine works here.',
    });
  }
}

function decoderOf(
  ort: OnnxRuntime,
  session: InferenceSession,
  model: OnnxModel,
  options: DecoderOptions,
): Decoder {
  const { profilePrefix } = options;
  const signature = decoderSignature(session, model);
  const memory: CacheMemory = new Map();
  let contextLen = options.contextLen;
  let cache: KvCache | null = null;
  let batchSize = 0;
  let pastLen = 0;

  async function step(inputIds: BigInt64Array, newTokens: number, start_ns: number): Promise<StepResult> {
    const totalLen = pastLen + newTokens;
    if (totalLen > contextLen) {
      throw new InferscopeError('E_LENGTHS', {
        what: `the context of ${plural(contextLen, 'token')} is full`,
        why: `It contains ${plural(pastLen, 'token')}, and ${formatCount(newTokens)} more were given.`,
        fix: 'Open the decoder with a larger contextLen (input length + output length).',
      });
    }
    const int64 = (data: BigInt64Array, length: number): Tensor =>
      new ort.Tensor('int64', data, [batchSize, length]);
    const feeds: Record<string, Tensor> = { ...cache!.feeds(), input_ids: int64(inputIds, newTokens) };
    if (signature.attentionMask) {
      feeds['attention_mask'] = int64(new BigInt64Array(batchSize * totalLen).fill(1n), totalLen);
    }
    if (signature.positionIds) {
      feeds['position_ids'] = int64(positions(batchSize, pastLen, newTokens), newTokens);
    }
    if (signature.useCacheBranch) {
      feeds['use_cache_branch'] = new ort.Tensor('bool', Uint8Array.of(pastLen > 0 ? 1 : 0), [1]);
    }
    const fetches: Record<string, Tensor | null> = { ...cache!.fetches(), logits: null };
    // The node binding accepts null for "allocate", but its types only allow it in the list form.
    const outputs = (await session
      .run(feeds, fetches as unknown as InferenceSession.FetchesType)
      .catch((error: unknown) => {
        throw runtimeError(error, {
          code: 'E_WORKLOAD_FAILED',
          what: `${model.name} failed in the runtime at ${newTokens} new tokens after ${pastLen}, batch ${batchSize}`,
          fix: 'Try a smaller --batch-size or --input-len; if it fails there too, export the model again.',
        });
      })) as Record<string, Tensor>;
    cache!.carryOver(outputs);
    pastLen = totalLen;
    const { last, all } = lastPosition(outputs['logits']!, batchSize, newTokens);
    return { logits: last, allLogits: all, start_ns, end_ns: monotonicNs() };
  }

  function allocate(): KvCache {
    return signature.cache === 'in-place'
      ? cacheInPlace(ort, signature.entries, batchSize, contextLen, memory)
      : cacheGrowing(ort, signature.entries, batchSize);
  }

  const decoder: Decoder = {
    reserve(sequences, tokens) {
      if (sequences === batchSize && tokens === contextLen && cache !== null) return;
      decoder.reset();
      batchSize = sequences;
      contextLen = tokens;
      try {
        cache = allocate();
      } catch (error) {
        decoder.reset();
        throw runtimeError(error, {
          code: 'E_WORKLOAD_FAILED',
          what: `no room for the KV cache of ${sequences} sequences of ${plural(tokens, 'token')}`,
          fix: 'Try a smaller --batch-size or --input-len.',
        });
      }
    },
    async prefill(sequences) {
      const start_ns = monotonicNs();
      const length = sequences[0]?.length ?? 0;
      if (length === 0 || sequences.some((sequence) => sequence.length !== length)) {
        throw new InferscopeError('E_LENGTHS', {
          what: 'the sequences of a batch must have one length, at least 1 token',
          why: `They have ${[...new Set(sequences.map((sequence) => sequence.length))].join(', ') || 'none'}.`,
          fix: 'Give prompts of equal length, or one prompt at a time.',
        });
      }
      if (cache === null || batchSize !== sequences.length || signature.cache === 'grows') {
        decoder.reset();
        batchSize = sequences.length;
        cache = allocate();
      }
      pastLen = 0;
      const ids = new BigInt64Array(batchSize * length);
      sequences.forEach((sequence, row) => {
        for (let i = 0; i < length; i++) ids[row * length + i] = BigInt(sequence[i]!);
      });
      return step(ids, length, start_ns);
    },
    async decode(tokens) {
      const start_ns = monotonicNs();
      if (cache === null || tokens.length !== batchSize) {
        throw new Error(`decode needs one token for each of the ${batchSize} sequences of the last prefill`);
      }
      return step(
        BigInt64Array.from({ length: batchSize }, (_, row) => BigInt(tokens[row]!)),
        1,
        start_ns,
      );
    },
    kvCacheBytes: () =>
      signature.entries.reduce(
        (sum, entry) => sum + batchSize * pastLen * entry.numKvHeads * entry.headDim * 4,
        0,
      ),
    reset() {
      cache?.dispose();
      cache = null;
      batchSize = 0;
      pastLen = 0;
    },
    async endProfiling() {
      session.endProfiling();
      return profilePath(profilePrefix);
    },
    async release() {
      decoder.reset();
      await session.release();
    },
  };
  return decoder;
}

function positions(batchSize: number, pastLen: number, newTokens: number): BigInt64Array {
  const ids = new BigInt64Array(batchSize * newTokens);
  for (let i = 0; i < ids.length; i++) ids[i] = BigInt(pastLen + (i % newTokens));
  return ids;
}

function lastPosition(
  logits: Tensor,
  batchSize: number,
  newTokens: number,
): { last: Float32Array; all: Float32Array | null } {
  const data = logits.data as Float32Array;
  const logitRows = logits.dims[1]!;
  if (logitRows === 1) return { last: data, all: newTokens === 1 ? data : null };
  const vocabSize = data.length / (batchSize * logitRows);
  const last = new Float32Array(batchSize * vocabSize);
  for (let row = 0; row < batchSize; row++) {
    const from = ((row + 1) * logitRows - 1) * vocabSize;
    last.set(data.subarray(from, from + vocabSize), row * vocabSize);
  }
  return { last, all: data };
}

/**
 * The runtime names the file `<prefix>_<date>_<time>.json` and does not return the name: it is the newest file with the
 * prefix.
 */
async function profilePath(prefix: string | undefined): Promise<string> {
  const folder = prefix === undefined ? null : dirname(prefix);
  const names = folder === null ? [] : await readdir(folder);
  const newest = names
    .filter((name) => name.startsWith(`${basename(prefix!)}_`) && name.endsWith('.json'))
    .sort()
    .at(-1);
  if (folder !== null && newest !== undefined) return join(folder, newest);
  throw new InferscopeError('E_WORKLOAD_FAILED', {
    what: 'the runtime wrote no operator trace',
    why: prefix === undefined ? 'Profiling was not on.' : `No file ${prefix}_*.json appeared.`,
    fix: 'Check that the folder is writable and has free space, then run again.',
  });
}

function runtimeError(
  error: unknown,
  failure: { code: 'E_MODEL_FILE' | 'E_WORKLOAD_FAILED'; what: string; fix: string },
): InferscopeError {
  const why = messageOf(error);
  if (/bad_alloc|failed to allocate|array buffer allocation|invalid typed array length/i.test(why)) {
    return new InferscopeError(
      'E_OUT_OF_MEMORY',
      {
        what: failure.what,
        why: `Memory ran out: ${why}`,
        fix: 'Use a smaller --batch-size, --input-len or model, or --dtype int4.',
      },
      { cause: error },
    );
  }
  return new InferscopeError(failure.code, { what: failure.what, why, fix: failure.fix }, { cause: error });
}

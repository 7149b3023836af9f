import type { Architecture } from './architecture.js';
import { emptyCache, forwardOf } from './memory-activations.js';
import { forwardTensors } from './memory-forward.js';
import { allocationsOf } from './memory-weights.js';
import type { ResolvedRequest } from './memory-request.js';
import type { Device } from './memory-shards.js';
import { freeAll } from './memory-tensors.js';
import { tensorBytes } from './storage.js';
import { torchAllocator, type Block, type TorchAllocator } from './torch-allocator.js';

/** Reserve of torch's allocator on one device after loading, a prefill and a decode, and after a second repeat. */
interface ReservedBytes {
  load: number;
  prefill: number;
  decode: number;
  end: number;
}

/** Maximum decode steps to simulate; longer outputs use larger strides. */
const maxSteps = 24;
/** More repeats change nothing: the second reuses the blocks of the first. */
const repeats = 2;

/**
 * Reserve of torch's caching allocator, by simulating the allocations of a run of transformers in order: weights, then
 * repeats of prefill and decode.
 */
export function reservedBytes(
  a: Architecture,
  device: Device,
  request: ResolvedRequest,
  workspaceBytes: number,
): ReservedBytes {
  const torch = torchAllocator();
  loadWeights(torch, a, device, request);
  const load = torch.reserved();
  // cuBLAS allocates its workspace at the first GEMM and keeps it.
  torch.malloc(workspaceBytes);
  let prefill = 0;
  let decode = 0;
  let cache = emptyCache<Block>(request);
  for (let repeat = 0; repeat < repeats; repeat += 1) {
    const run = { ...forwardOf(a, request), memory: torch, enter: () => {}, cache };
    const logits = forwardTensors({ ...run, newTokens: request.inputLen, cachedTokens: 0 }, device.layers);
    if (repeat === 0) prefill = torch.reserved();
    torch.free(decodeAll(run, request, device, logits));
    if (repeat === 0) decode = torch.reserved();
    if (request.cache === 'static') continue;
    freeAll(
      torch,
      cache.layers.flatMap((layer) => (layer ? [layer.keys, layer.values] : [])),
    );
    cache = emptyCache(request);
  }
  return { load, prefill, decode, end: torch.reserved() };
}

/**
 * Weights in module order. from_pretrained loads divided weights onto their device after allocating memory for all of
 * them in one block (`caching_allocator_warmup`) and returning it to torch.
 */
function loadWeights(torch: TorchAllocator, a: Architecture, device: Device, request: ResolvedRequest): void {
  const { storage, loading, parallel } = request;
  const sizes = device.tensors.flatMap((tensor) => allocationsOf(tensor, storage));
  if (parallel.tensor > 1) torch.free(torch.malloc(sizes.reduce((sum, bytes) => sum + bytes, 0)));
  for (const bytes of sizes) torch.malloc(bytes);
  const embedding = device.tensors.find(({ name }) => name === 'embed_tokens');
  if (loading === 'random' && parallel.tensor === 1 && a.tiedEmbeddings && embedding) {
    torch.free(torch.malloc(tensorBytes(embedding, storage.weights)));
  }
}

/**
 * A static cache is decoded by a graph or compiled code with a separate pool.
 * @returns the last logits
 */
function decodeAll(
  run: Omit<Parameters<typeof forwardTensors<Block>>[0], 'newTokens' | 'cachedTokens'>,
  { inputLen, outputLen, cache }: ResolvedRequest,
  { layers }: Device,
  first: Block,
): Block {
  if (cache === 'static') return first;
  const steps = Math.max(0, outputLen - 1);
  const stride = Math.max(1, Math.ceil(steps / maxSteps));
  let logits = first;
  for (let step = 1; step <= steps; step = step === steps ? steps + 1 : Math.min(steps, step + stride)) {
    const next = forwardTensors({ ...run, newTokens: 1, cachedTokens: inputLen + step - 1 }, layers);
    run.memory.free(logits);
    logits = next;
  }
  return logits;
}

/**
 * Private pool of a CUDA graph for one decode step over a static cache: the cuBLAS workspace of its stream, and the
 * step's tensors. The cache has a mask, so keys and values of one layer are repeated for all heads in the pool.
 */
export function graphPoolBytes(
  a: Architecture,
  { layers }: Device,
  request: ResolvedRequest,
  workspaceBytes: number,
): number {
  const pool = torchAllocator();
  pool.malloc(workspaceBytes);
  const outside = torchAllocator();
  const cache = emptyCache<Block>({ ...request, cache: 'static' });
  cache.layers = layers.map(() => ({ keys: outside.malloc(1), values: outside.malloc(1) }));
  const step = { newTokens: 1, cachedTokens: request.inputLen };
  forwardTensors({ ...forwardOf(a, request), memory: pool, enter: () => {}, cache, ...step }, layers);
  return pool.reserved();
}

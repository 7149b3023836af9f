import { bytesPerElement } from '../model/dtype.js';
import type { Architecture, LatentAttention, Layer } from './architecture.js';
import { kvElementsPerToken } from './kv-cache.js';
import { allocationsOf } from './memory-weights.js';
import { sequencesOf } from './memory-place.js';
import type { ResolvedRequest } from './memory-request.js';
import type { Device } from './memory-shards.js';
import { tensorBytes } from './storage.js';
import { torchAllocator, type Block, type TorchAllocator } from './torch-allocator.js';

/** Reserve of torch's allocator on one device after loading, a prefill and a decode, and after all of it a second time. */
export interface ReservedBytes {
  load: number;
  prefill: number;
  decode: number;
  end: number;
}

/** Decode steps that are gone through; a longer output takes larger strides. */
const mostSteps = 24;
/** More repeats change nothing: the second finds the blocks that the first left. */
const repeats = 2;

/**
 * What torch's caching allocator ends up holding, by going through the allocations of a run of transformers (5.17) in the
 * order in which its modelling classes make and drop them: weights, two repeats of prefill and decode. Tensors of up to
 * 1 MiB are left out of decode: they share a few MiB.
 */
export function reservedBytes(
  a: Architecture,
  device: Device,
  request: ResolvedRequest,
  workspaceBytes: number,
): ReservedBytes {
  const torch = torchAllocator();
  const run: Run = { torch, a, device, request, sequences: sequencesOf(request) };
  loadWeights(run);
  const load = torch.reserved();
  // cuBLAS takes its workspace at the first product and keeps it.
  torch.malloc(workspaceBytes);
  const whole = request.inputLen + request.outputLen;
  let prefill = 0;
  let decode = 0;
  const kept =
    request.cache === 'static' ? device.layers.map((layer) => allocateCache(run, layer, whole)) : null;
  for (let repeat = 0; repeat < repeats; repeat += 1) {
    const cache = prefillOnce(run, kept);
    if (repeat === 0) prefill = torch.reserved();
    if (!kept) decodeAll(run, cache);
    if (repeat === 0) decode = torch.reserved();
    for (const { keys, values } of kept ? [] : cache) {
      torch.free(keys);
      torch.free(values);
    }
  }
  return { load, prefill, decode, end: torch.reserved() };
}

interface Run {
  torch: TorchAllocator;
  a: Architecture;
  device: Device;
  request: ResolvedRequest;
  sequences: number;
}

interface Cached {
  keys: Block;
  values: Block;
}

/**
 * Weights in the order of the modules. Divided ones are loaded by from_pretrained onto their device, which first takes the
 * memory of all of them in one piece (`caching_allocator_warmup`) and gives it back to torch.
 */
function loadWeights({ torch, a, device, request }: Run): void {
  const { storage, loading, parallel } = request;
  const sizes = device.tensors.flatMap((t) => allocationsOf(t, storage));
  if (parallel.tensor > 1) torch.free(torch.malloc(sizes.reduce((sum, bytes) => sum + bytes, 0)));
  for (const bytes of sizes) torch.malloc(bytes);
  const embedding = device.tensors.find(({ name }) => name === 'embed_tokens');
  if (loading === 'random' && parallel.tensor === 1 && a.tiedEmbeddings && embedding) {
    torch.free(torch.malloc(tensorBytes(embedding, storage.weights)));
  }
}

/** Bytes of the two halves of a layer's cache at `tokens`; a window is kept from the first decode step on. */
function cacheHalves(
  { request, sequences }: Run,
  { attention }: Layer,
  tokens: number,
  windowed: boolean,
): [number, number] {
  const b = bytesPerElement[request.storage.kvCache];
  const elements = kvElementsPerToken(attention, request.parallel.tensor);
  const { window } = attention;
  const kept = window === null || !windowed || !request.hybridCache ? tokens : Math.min(tokens, window);
  const keys = attention.kind === 'latent' ? attention.ropeDim : elements / 2;
  return [sequences * kept * keys * b, sequences * kept * (elements - keys) * b];
}

function allocateCache(run: Run, layer: Layer, tokens: number): Cached {
  const [keys, values] = cacheHalves(run, layer, tokens, false);
  return { keys: run.torch.malloc(keys), values: run.torch.malloc(values) };
}

function prefillOnce(run: Run, kept: readonly Cached[] | null): Cached[] {
  const { torch, a, device, request, sequences } = run;
  const { inputLen, storage, parallel } = request;
  const tokens = sequences * inputLen;
  const b = bytesPerElement[storage.activations];
  const D = a.hiddenSize * b * tokens;
  const embeds = torch.malloc(D);
  let hidden = embeds;
  const cache: Cached[] = [];
  for (const [index, layer] of device.layers.entries()) {
    const normed = norm(run, tokens);
    const cached = attention(run, layer, tokens, kept?.[index] ?? null);
    cache.push(cached.cache);
    torch.free(normed);
    const middle = torch.malloc(D);
    torch.free(cached.output);
    const again = norm(run, tokens);
    const output = mlp(run, layer, tokens, parallel.tensor);
    torch.free(again);
    const next = torch.malloc(D);
    torch.free(output);
    torch.free(middle);
    if (hidden !== embeds) torch.free(hidden);
    hidden = next;
  }
  const last = norm(run, tokens);
  if (hidden !== embeds) torch.free(hidden);
  const logits = torch.malloc(sequences * a.vocabSize * b);
  torch.free(last);
  torch.free(embeds);
  torch.free(logits);
  return cache;
}

/** RMSNorm works in float32: x, x² and the product; LayerNorm is one kernel. */
function norm({ torch, a, request }: Run, tokens: number): Block {
  const b = bytesPerElement[request.storage.activations];
  const D = tokens * a.hiddenSize;
  if (a.norm === 'layernorm') return torch.malloc(D * b);
  const wide = b < 4 ? torch.malloc(D * 4) : null;
  torch.free(torch.malloc(D * 4));
  const scaled = torch.malloc(D * 4);
  if (wide) torch.free(wide);
  const narrow = b < 4 ? torch.malloc(D * b) : null;
  const output = torch.malloc(D * b);
  if (narrow) torch.free(narrow);
  torch.free(scaled);
  return output;
}

function attention(
  run: Run,
  layer: Layer,
  tokens: number,
  kept: Cached | null,
): { output: Block; cache: Cached } {
  const { torch, a, request, sequences } = run;
  const b = bytesPerElement[request.storage.activations];
  const heads = layer.attention.headCount / request.parallel.tensor;
  const { attention: at } = layer;
  if (at.kind === 'latent') return latentAttention(run, layer, at, tokens, kept);
  const q = tokens * heads * at.headDim * b;
  const kv = (tokens * kvElementsPerToken(at, request.parallel.tensor) * b) / 2;
  const [query, key, value] = [torch.malloc(q), torch.malloc(kv), torch.malloc(kv)];
  const turnedQuery = rotary(torch, q);
  const turnedKey = rotary(torch, kv);
  torch.free(query);
  torch.free(key);
  const cache = kept ?? allocateCache(run, layer, request.inputLen);
  torch.free(turnedKey);
  torch.free(value);
  const scores =
    request.attention === 'eager'
      ? [b, 4].map((bytes) => torch.malloc(sequences * heads * request.inputLen ** 2 * bytes))
      : [];
  const attended = torch.malloc(q);
  for (const block of scores) torch.free(block);
  const output = torch.malloc(tokens * a.hiddenSize * b);
  torch.free(attended);
  torch.free(turnedQuery);
  return { output, cache };
}

/** The cache holds the latent; keys and values of all heads are made from it for each step. */
function latentAttention(
  run: Run,
  layer: Layer,
  at: LatentAttention,
  tokens: number,
  kept: Cached | null,
): { output: Block; cache: Cached } {
  const { torch, a, request } = run;
  const b = bytesPerElement[request.storage.activations];
  const heads = at.headCount / request.parallel.tensor;
  const q = tokens * heads * (at.nopeDim + at.ropeDim) * b;
  const projected = torch.malloc(q);
  const latent = torch.malloc(tokens * (at.kvRank + at.ropeDim) * b);
  const query = torch.malloc(q);
  torch.free(projected);
  const cache = kept ?? allocateCache(run, layer, request.inputLen);
  torch.free(latent);
  const expanded = expand(run, at, request.inputLen);
  const attended = torch.malloc(tokens * heads * at.valueDim * b);
  const output = torch.malloc(tokens * a.hiddenSize * b);
  for (const block of [attended, query, ...expanded]) torch.free(block);
  return { output, cache };
}

function expand({ torch, request, sequences }: Run, at: LatentAttention, length: number): Block[] {
  const width = sequences * length * bytesPerElement[request.storage.activations];
  const heads = at.headCount / request.parallel.tensor;
  return [
    torch.malloc(width * heads * (at.nopeDim + at.valueDim)),
    torch.malloc(width * heads * (at.nopeDim + at.ropeDim)),
  ];
}

/** x·cos + rotate_half(x)·sin, product by product. */
function rotary(torch: TorchAllocator, bytes: number): Block {
  const cosine = torch.malloc(bytes);
  const half = torch.malloc(bytes / 2);
  const rotated = torch.malloc(bytes);
  torch.free(half);
  const sine = torch.malloc(bytes);
  torch.free(rotated);
  const turned = torch.malloc(bytes);
  torch.free(cosine);
  torch.free(sine);
  return turned;
}

function mlp({ torch, a, request }: Run, { mlp: of }: Layer, tokens: number, tensor: number): Block {
  const b = bytesPerElement[request.storage.activations];
  const D = tokens * a.hiddenSize * b;
  if (of.kind === 'dense') return dense(torch, (tokens * of.intermediateSize * b) / tensor, D, of.gated);
  const shared =
    of.sharedIntermediateSize > 0
      ? dense(torch, (tokens * of.sharedIntermediateSize * b) / tensor, D, true)
      : null;
  const routed = of.expertsPerToken * tokens * b;
  const [inner, outer] = [(routed * of.intermediateSize) / tensor, routed * a.hiddenSize];
  const selected = torch.malloc(outer);
  let wide = replaced(torch, torch.malloc(2 * inner), 2 * inner);
  const active = torch.malloc(inner);
  const product = torch.malloc(inner);
  torch.free(active);
  torch.free(wide);
  wide = torch.malloc(outer);
  torch.free(product);
  wide = replaced(torch, wide, outer);
  const weighted = replaced(torch, torch.malloc(outer), outer);
  const output = torch.malloc(D);
  for (const block of [selected, wide, weighted]) torch.free(block);
  if (!shared) return output;
  const scaled = replaced(torch, shared, D);
  const sum = torch.malloc(D);
  torch.free(output);
  torch.free(scaled);
  return sum;
}

function replaced(torch: TorchAllocator, block: Block, bytes: number): Block {
  const next = torch.malloc(bytes);
  torch.free(block);
  return next;
}

function dense(torch: TorchAllocator, inner: number, D: number, gated: boolean): Block {
  let active = replaced(torch, torch.malloc(inner), inner);
  if (gated) {
    const up = torch.malloc(inner);
    const product = torch.malloc(inner);
    torch.free(active);
    torch.free(up);
    active = product;
  }
  const output = torch.malloc(D);
  torch.free(active);
  return output;
}

/** Each step makes the keys and values of each layer anew, one token longer. */
function decodeAll(run: Run, cache: Cached[]): void {
  const { torch, a, device, request, sequences } = run;
  const { inputLen, outputLen, storage } = request;
  const steps = Math.max(0, outputLen - 1);
  const stride = Math.max(1, Math.ceil(steps / mostSteps));
  const logits = sequences * a.vocabSize * bytesPerElement[storage.activations];
  for (let step = 1; step <= steps; step = step === steps ? steps + 1 : Math.min(steps, step + stride)) {
    for (const [index, cached] of cache.entries()) {
      const [keyBytes, valueBytes] = cacheHalves(run, device.layers[index]!, inputLen + step, true);
      cached.keys = replaced(torch, cached.keys, keyBytes);
      cached.values = replaced(torch, cached.values, valueBytes);
      const { attention: at } = device.layers[index]!;
      if (at.kind === 'latent') for (const block of expand(run, at, inputLen + step)) torch.free(block);
    }
    torch.free(torch.malloc(logits));
  }
}

import { expect, test } from 'vitest';
import { parseQuestion } from './parsed-question.js';
import { requestedChanges } from './requested-changes.js';
import { topicsOf } from './topics.js';

const read = (text: string) => {
  const question = parseQuestion(text);
  const workload = { batchSize: 4, contextLen: 560, gpus: question.gpus };
  return { question, workload, changes: requestedChanges(text, workload) };
};

/** Questions of engineers, and the topic that must answer each. */
test.each<[question: string, topic: string]>([
  ['Why is decode slow?', 'why_slow'],
  ['why is it so slow', 'why_slow'],
  ['is my GPU underutilized?', 'gpu_utilized'],
  ['Where does the time of a decode step go?', 'time'],
  ['How long does a decode step take?', 'time'],
  ['how long does loading take', 'time'],
  ['How many tokens per second do we get?', 'tokens_per_s'],
  ['What does a token cost?', 'token_cost'],
  ['cost per million tokens at $2.50 per GPU hour', 'token_cost'],
  ['how much money is 1M output tokens at 3 EUR/h?', 'token_cost'],
  ['Is the GPU idle between steps?', 'idle'],
  ['What is the GPU waiting for?', 'idle'],
  ['are there bubbles in the timeline', 'idle'],
  ['Is decode launch-bound?', 'launch_bound'],
  ['are cuda graphs used', 'graphs_used'],
  ['How many kernels are launched per decode step?', 'launch_counts'],
  ['Is the host the bottleneck?', 'host'],
  ['Is Python slowing us down?', 'host'],
  ['is the tokenizer a problem', 'host'],
  ['Do we synchronize every step?', 'synchronization'],
  ['is there a .item() in the loop', 'synchronization'],
  ['Which kernels take longest?', 'kernels'],
  ['How much is attention?', 'class_share'],
  ['What share of decode is GEMM?', 'class_share'],
  ['How much time do the layer norms take?', 'class_share'],
  ['Which kernel is memory bound?', 'bound_kernels'],
  ['list the compute-bound kernels', 'bound_kernels'],
  ['Is decode memory-bound or compute-bound?', 'bound'],
  ['What is the MFU of prefill?', 'utilization'],
  ['How far from the roofline are we?', 'utilization'],
  ['what bandwidth do we reach', 'utilization'],
  ['Are the tensor cores used?', 'counters'],
  ['Does the launching thread wait for a core?', 'preempted_host'],
  ['Is there CPU contention?', 'preempted_host'],
  ['What bus bandwidth has the all-gather?', 'collectives'],
  ['What limits occupancy?', 'counters'],
  ['What is the L2 hit rate?', 'counters'],
  ['Are there uncoalesced accesses?', 'coalescing'],
  ['any bank conflicts', 'bank_conflicts'],
  ['Is flash attention used?', 'attention_kind'],
  ['How much is copied between host and device?', 'copies'],
  ['Is any copy from pageable memory?', 'copies'],
  ['What takes the memory?', 'memory'],
  ['How big is the KV cache?', 'memory'],
  ['Does it fit on an A100?', 'fits'],
  ['will batch 64 fit into 24 GB?', 'fits'],
  ['What is the largest batch that fits?', 'fits'],
  ['would it run out of memory at batch 256', 'fits'],
  ['At which batch does decode become compute-bound?', 'turning_batch'],
  ['What changed since yesterday?', 'changed'],
  ['Is it slower than the last run?', 'changed'],
  ['did anything regress', 'changed'],
  ['Is the GPU throttling?', 'throttling'],
  ['How much power does it draw?', 'sampled'],
  ['How busy was the CPU?', 'sampled'],
  ['CPU use', 'sampled'],
  ['How busy was the GPU?', 'gpu_utilized'],
  ['How noisy is the measurement?', 'certainty'],
  ['can I trust these numbers', 'certainty'],
  ['How much does the profiler add?', 'profiler'],
  ['Is NCCL communication exposed?', 'communication'],
  ['Is there a KV cache problem?', 'kv_concat'],
  ['which rank is the straggler', 'stragglers'],
  ['which rank is slow?', 'stragglers'],
  ['What should I change first?', 'change'],
  ['how do I make it faster', 'change'],
  ["what's the biggest bottleneck", 'change'],
  ['What should I capture next?', 'next_capture'],
  ['What is the p99 latency?', 'requests'],
  ['what is the TTFT?', 'requests'],
  ['which load is best?', 'requests'],
  ['which GEMM shapes are there?', 'gemm_shape'],
  ['how many requests failed?', 'failed_requests'],
  ['what was the error rate', 'failed_requests'],
  ['did any request time out', 'failed_requests'],
  ['Why does throughput stop scaling with batch?', 'requests'],
  ['Are there recompilations?', 'recompilation'],
  ['Does the allocator call cudaMalloc in the loop?', 'allocator'],
  ['is memory fragmented', 'fragmentation'],
  ['are the streams serialized', 'streams'],
  ['is the KV cache concatenated every step', 'kv_concat'],
  ['how much time goes to casts', 'casts'],
  ['is anything in fp32', 'precision'],
  ['is another process on the GPU', 'another_process'],
  ['is it really running on the GPU', 'cpu_by_accident'],
  ['how often is the prefix cache hit', 'prefix_cache'],
  ['are requests preempted', 'kv_pool'],
  ['Which model ran on which GPU?', 'what_ran'],
  ['Is the GPU fully utilized during generation?', 'gpu_utilized'],
  ['How does output length compare?', 'measured_growth'],
  ['Does increasing batch size improve utilization?', 'measured_growth'],
  ['Which kernels are memory-bound vs compute-bound?', 'bound_kernels'],
  ['What are the GEMM share and the elementwise overhead?', 'class_share'],
  ['Is throughput stable across runs?', 'certainty'],
  ['Is CPU scheduling, kernels or allocation the cost?', 'verdict'],
  ['what eats the time, Python or the GPU?', 'verdict'],
  ['host time versus kernel time versus allocation time', 'verdict'],
  ['Are there health flags?', 'health'],
  ['is something off with these numbers?', 'health'],
  ['What are MFU and MBU per stage?', 'utilization'],
  ['What percentage of the peak compute is achieved in prefill?', 'utilization'],
  ['does decode saturate the GPU?', 'gpu_utilized'],
  ['which kernel is bandwidth limited', 'bound_kernels'],
  ['tell me for every kernel if memory or compute limits it', 'bound_kernels'],
  ['Is generation limited by memory bandwidth or compute?', 'bound'],
  ['Does memory bandwidth limit generation?', 'bound'],
  ['What is the memory limit of the run?', 'memory'],
  ['were clocks lowered because of power?', 'throttling'],
  ['What clocks does the GPU run at?', 'sampled'],
  ['count kernels in a step', 'launch_counts'],
  ['How much of the time does the GPU do nothing?', 'idle'],
  ['How does prompt size influence latency?', 'measured_growth'],
  ['Do longer outputs slow decode down?', 'measured_growth'],
  ['Do bigger batches make the GPU busier?', 'measured_growth'],
])('%s → %s', (text, topic) => {
  const { question, workload } = read(text);
  expect(topicsOf(question, workload).map(({ id }) => id)[0]).toBe(topic);
});

/** Hypothetical questions, and the changes that are read from them. */
test.each<[question: string, alternatives: string[][]]>([
  ['What if batch 32?', [['batch-size=32']]],
  ['what happens with a batch size of 16', [['batch-size=16']]],
  ['Would batch 8, 16 or 32 be better?', [['batch-size=8'], ['batch-size=16'], ['batch-size=32']]],
  ['What if we double the batch size?', [['batch-size=8']]],
  ['would 64 concurrent users be faster', [['batch-size=64']]],
  ['Would fp8 help?', [['dtype=float8']]],
  ['Should we quantize to int4?', [['dtype=int4']]],
  ['would quantization help', [['dtype=float8'], ['dtype=int4']]],
  ['how much would AWQ save', [['dtype=int4']]],
  ['is it worth switching to bf16', [['dtype=bfloat16']]],
  ['Would CUDA graphs help?', [['cudagraph']]],
  ['What would flash attention bring?', [['fused-attention']]],
  ['what do we gain from torch.compile', [['fused-elementwise']]],
  ['how fast would it be without .item() every step', [['no-sync']]],
  ['would pinned memory help', [['pinned-copies']]],
  ['What happens at a context of 8192 tokens?', [['context-len=8192']]],
  ['how slow would 32k context be', [['context-len=32768']]],
  ['what if the prompt is 4k', [['context-len=4096']]],
  ['How fast would it be on an H100?', [['gpu=NVIDIA H100 80GB HBM3']]],
  ['would an RTX 4090 be enough', [['gpu=NVIDIA GeForce RTX 4090']]],
  ['H100 or B200, what would we gain', [['gpu=NVIDIA H100 80GB HBM3'], ['gpu=NVIDIA B200']]],
  [
    'What if we used fp8 at batch 64 on an H100?',
    [['batch-size=64', 'dtype=float8', 'gpu=NVIDIA H100 80GB HBM3']],
  ],
])('%s is a prediction', (text, alternatives) => {
  const { question, workload, changes } = read(text);
  expect(changes?.alternatives).toEqual(alternatives);
  expect(topicsOf(question, workload)[0]!.id).toBe('what_if');
});

test.each([
  ['Would speculative decoding help?', /accepted/],
  ['would tensor parallelism over 2 GPUs help', /communication/],
  ['should we switch to vLLM', /engine/],
])('%s: no prediction covers it, and the answer states so', (text, why) => {
  const { changes } = read(text);
  expect(changes!.alternatives).toEqual([]);
  expect(changes!.unknown[0]!.what).toMatch(why);
});

test.each(['What color is the sky?', 'hello', 'tell me a joke', 'who are you'])('%s has no topic', (text) => {
  const { question, workload, changes } = read(text);
  expect([changes, topicsOf(question, workload)]).toEqual([null, []]);
});

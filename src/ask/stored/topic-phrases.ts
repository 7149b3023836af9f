/**
 * Typical questions by topic, for the index (phrase-index.ts), separated by bars. Each says the same thing in other words. Whether a change
 * here is better is measured on questions that it was not written for (docs/decisions/074).
 */
export const topicPhrases = {
  fits: `
    squeeze a model onto a card of so many GB | sufficient memory: blows up or crashes by size | can a 70B model run in 48 GB |
    does the model fit into memory of the GPU | how much batch fits in VRAM | largest batch or context that fits |
    run out of memory OOM | is there room for a larger model | sufficient memory for the batch | maximum batch size possible |
    how many sequences or requests can we hold`,
  changed: `
    what changed since yesterday | difference to the last run | regression against the previous session |
    slower or faster than before | compared with last week | did performance regress | got worse than the last version`,
  verdict: `
    who is to blame: malloc or GEMMs | scheduler or kernels the main cost | is CPU scheduling, kernels or allocation the cost |
    host time versus GPU kernel time versus allocation | Python or the GPU: what dominates the time |
    CPU or GPU which costs more`,
  turning_batch: `
    where does decode flip from bandwidth to compute limited | from how many sequences does batching bring nothing more |
    does batching pay off | does a larger batch pay off |
    at which batch size does decode become compute-bound | which batch turns compute bound | batch that saturates compute |
    batch where memory-bound ends`,
  measured_growth: `
    bigger batches make the GPU busier |
    is step latency linear in batch or flat | time per token creeps up with generation length |
    how does the time change with longer context | how does prompt length affect latency | output length compared |
    do longer outputs slow decode | does increasing batch size improve utilization | twice the prompt costs |
    latency grows with prompt length | utilization against batch size | effect of longer generation on time per token |
    scaling of latency with input tokens`,
  next_capture: `
    which experiment should I run now | which recording or trace is missing | what to trace after this |
    what should be captured next | what to measure or profile next | next step of the investigation |
    which capture should I record`,
  change: `
    where do I start tuning | top bottleneck | lowest hanging fruit | what to fix first | what should I change first |
    how to make it faster | biggest bottleneck | how to improve or optimize | best fix recommended |
    what is wrong: problems and issues | advice and findings | low hanging fruit | reduce the time of a step`,
  health: `
    did anything go wrong while recording | dropped events or truncated trace | is this capture usable | health flags |
    warnings about the run | is the measurement valid | something odd or suspicious or disturbed during the run | sanity check |
    is anything off with these numbers`,
  bound_kernels: `
    which kernels are memory-bound vs compute-bound |
    kernels left of the ridge | kernels that wait on DRAM or hit the FLOP ceiling | which kernels are memory-bound |
    which kernel is compute-bound | kernels limited by bandwidth | list kernels by memory or compute limit |
    kernels that hit the memory roof`,
  bound: `
    is it memory-bound | is it compute-bound | FLOPs per byte of decode | is generation limited by HBM bandwidth | is decode memory-bound or compute-bound |
    what limits or bounds generation: bandwidth or compute | arithmetic intensity | ridge point: which side of the roofline |
    does memory bandwidth limit prefill`,
  gpu_utilized: `
    GPU capacity left on the table | spare capacity of the GPU | is the GPU fully utilized | does decode saturate the GPU |
    is the GPU underutilized | how busy is the GPU | GPU is well used | device maxed out`,
  utilization: `
    GB/s reached versus peak | how much memory bandwidth is used | TFLOP/s against the limit | MFU | MBU | how far from the roofline | achieved bandwidth |
    achieved FLOPS TFLOPs | percentage of peak compute | efficiency | how close to the peak of the hardware |
    model FLOPs utilization per stage`,
  counters: `
    SM and warp efficiency measured by ncu | tensor core pipe used | occupancy | L2 cache hit rate | L1 hit | warp stall reasons |
    registers per thread | DRAM throughput of a kernel | hardware counters | what limits occupancy`,
  launch_counts: `
    how many launches |
    cudaLaunchKernel calls per token | kernel count per forward pass | how many kernels per decode step |
    number of kernel launches per layer | count kernels in a step | launches per token`,
  copies: `
    upload and download of tensors over PCIe | cpu to gpu transfers | copies between host and device | memcpy H2D D2H |
    pageable or pinned memory copies | PCIe transfers | how much data is copied`,
  idle: `
    idle between steps | biggest bubble |
    SMs with no work | nothing runs on the GPU | GPU idle time | gaps between kernels | what is the GPU waiting for |
    bubbles in the timeline | GPU does nothing | is the device starved or stalled between steps | dead time pauses`,
  certainty: `
    standard deviation stddev of step time | believe these timings | error bars | how noisy is the measurement | variance and spread |
    can I trust these numbers | stable across runs | repeatable, reproducible | confidence interval, significant |
    enough repeats or samples | jitter, consistency, accurate`,
  class_share: `
    share of attention in a step | attention against GEMM | percentage of norm, rmsnorm, layernorm | fraction of elementwise
    kernels | part of embedding or sampling | matmul GEMM share | rope and softmax share | percent of decode is attention | attention`,
  launch_bound: `
    kernels too tiny: submitting takes longer than executing | is it launch-bound | kernel launch overhead |
    limited by launches`,
  graphs_used: `
    are CUDA graphs used | is the step replayed from a CUDA graph | how many kernels run in CUDA graphs | graph replays`,
  synchronization: `
    who calls cudaStreamSynchronize each token | CPU blocks on the GPU every iteration | synchronization every step |
    .item() or .cpu() in the loop | host waits for the GPU cudaStreamSynchronize | unneeded syncs`,
  recompilation: `
    guards failed and new graphs were compiled | recompilation by torch.compile | dynamo inductor compiles again |
    triton autotuning`,
  fragmentation: `
    reserved memory far above allocated, holes in the heap | is memory fragmented | allocator fragmentation`,
  allocator: `
    allocs per step, malloc and free | cudaMalloc in the loop | allocator calls cudaFree | memory allocated and freed every step |
    allocations`,
  logits: `
    vocabulary projection for every prompt token | output tensor of vocab size upcast | logits |
    lm_head for every prompt position | logits leave the GPU`,
  rebuilt: `
    masks made anew every step | tensors created again | attention mask rebuilt`,
  kv_concat: `
    KV cache concatenated every step | KV cache cloned or copied | torch.cat of past keys and values |
    a problem with the KV cache`,
  casts: `
    too many .to(bf16) | conversions half to float and back in each layer | casts and dtype conversions |
    layout copies, transposes, contiguous | converting between fp32 and fp16`,
  throttling: `
    SM clock fell midway by thermal limits | is the GPU throttled | clocks dropped by power cap or heat |
    thermal slowdown, overheating | power limit reached | too hot`,
  another_process: `
    somebody else running on the same GPU | foreign pids on the device | another process on the GPU | someone else using the GPU |
    is the GPU shared`,
  stragglers: `
    which GPU or worker lags behind the others | one TP worker is always late | which rank is the straggler | slowest rank | which rank is slow |
    imbalance between ranks`,
  communication: `
    allreduce not hidden behind compute | NCCL communication exposed | all-reduce cost | collectives, NVLink |
    is communication hidden`,
  collectives: `
    NCCL ring speed GB/s | bus bandwidth of all-gather | reduce-scatter busbw | late rank of a collective |
    NCCL algorithm bandwidth`,
  streams: `
    do copies and compute overlap | streams overlap | are streams serialized | concurrent kernels`,
  bank_conflicts: `
    threads hit the same bank in smem | shared memory bank conflicts`,
  coalescing: `
    memory transactions not coalesced | uncoalesced memory access | strided access pattern | sectors per request`,
  prefix_cache: `
    shared system prompt reused across requests | prompt tokens not recomputed thanks to caching | prefix cache hits |
    prefix caching effect`,
  kv_pool: `
    ran out of KV blocks and kicked out sequences | requests evicted and recomputed under load | requests preempted, evicted |
    KV cache blocks pool full | KV pool too small`,
  client: `
    load generator or client the limit | is the client of the load test slow`,
  between_requests: `
    the server idles between requests of the load`,
  cpu_by_accident: `
    is it really running on the GPU | falls back to CPU by accident | runs on the CPU`,
  attention_kind: `
    attention backend picked: FA3, xformers, naive or math SDPA | which attention implementation | is flash attention used |
    eager or fused SDPA attention`,
  precision: `
    number format of the GEMMs, bf16 or float32 | is anything in fp32 | tf32 single precision | right dtype mixed precision`,
  gemm_shape: `
    list the shapes and dimensions M N K of the matrix multiplications that ran | tiles and wave quantization of GEMM | misaligned shapes, padding | split-k tile alignment`,
  fusion: `
    pointwise ops not fused |
    lots of little mul and add kernels could be merged | activation and multiply in separate kernels |
    unfused elementwise kernels | kernel fusion | many small kernels`,
  profiler: `
    how much slower by tracing itself | instrumentation distorts the step time | how much does the profiler add |
    profiling overhead | distortion by nsys | observer effect`,
  kernels: `
    which single operator costs most | slowest kernel and its duration |
    most expensive kernels | which kernels are slow | operator that costs most | which kernels take longest | slowest operators | hottest ops hotspots |
    top kernels by time | triton or cutlass kernel`,
  memory: `
    what is the memory limit of the run | where the memory went |     memory split: weights, activations, KV cache | how much memory does it use | what takes the memory | KV cache size | how big is the KV cache |
    VRAM used by weights and activations | peak memory in GB | memory usage RSS`,
  sampled: `
    nvidia-smi utilization, power and memory clock over the run | power draw in watts | clock frequency | temperature |
    utilization over the run | clocks the GPU runs at | how busy is the CPU | CPU use and utilization of the host | how many cores are busy`,
  host: `
    PyTorch dispatcher limits the step rate | single-threaded CPU work holds it up | is the host the bottleneck |
    Python slow dispatch | CPU overhead | tokenizer a problem | interpreter`,
  requests: `
    how long do requests wait before they are scheduled | max requests per second the server sustains | latency percentiles |
    p99 latency | throughput of batches | where throughput stops scaling: knee | goodput and SLO | queueing and saturation |
    TTFT TPOT ITL of requests | costs per batch | which load is best | how many users should it serve | time to first token under load`,
  failed_requests: `
    how many requests failed | failed requests | did any request fail or time out | share of requests with errors |
    what was the error rate`,
  tokens_per_s: `
    generation speed per user and in total | tokens generated per sec | tokens per second | tok/s | how fast does it generate`,
  token_cost: `
    what does a token cost | cost per million tokens | price per million output tokens | dollars per 1M tokens | money per token |
    what do a million tokens cost at $2 per GPU hour | USD per GPU hour | how expensive is a token | cheapest way to generate tokens |
    serving cost in euros`,
  scaling: `
    scaling with batch stops growing, plateau | knee of scaling`,
  what_ran: `
    which checkpoint, hardware and version was this | setup of this recording | vLLM or Hugging Face |
    which model ran on which GPU | what engine and dtype | what was measured | which machine, hardware, program`,
  why_slow: `
    what is slow | why is it slow | what makes it slow | what is the reason it takes ages | how come it is so sluggish | why is decode slow | why does it take so long |
    explain the cause | reason for high latency`,
  time: `
    how long does loading take |
    breakdown of the step |  where does the time of a step go | how long does a decode step take |
    duration of prefill | time of loading and warm-up | waterfall of a step | latency of stages in ms`,
  no_cache: `
    KV cache not used | use_cache is off | recomputes the whole prompt every step | decoding without a cache`,
} as const;

import { plural } from '../vocabulary/format.js';
/**
 * Memory of the driver, libraries and engines, which no config.json states. Each constant has its source and the number
 * of runs that it was fitted to, so that `validate` can report the wrong one and the value that fits.
 */
export interface MemoryConstant extends Origin {
  bytes: number;
  confidence: 'high' | 'medium' | 'low';
}

interface Origin {
  source: string;
  /** Number of runs that the value was fitted to; null if code, a driver or published figures state it. */
  runs: number | null;
}

/** The source as an estimate shows it, with the number of fitted runs. */
export function sourceWithRuns({ source, runs }: Origin): string {
  return runs === null ? source : `${source} (fitted to ${plural(runs, 'run')})`;
}

const mib = 2 ** 20;
const gib = 2 ** 30;

/** A CUDA context with the code of torch and cuBLAS, by GPU architecture, as the driver counts it for the process. */
export const cudaContext: Readonly<Record<string, MemoryConstant>> = {
  Hopper: {
    bytes: 687 * mib,
    confidence: 'medium',
    source: "driver − torch's reserve on an H200, torch 2.11 with CUDA 13: 687 MiB",
    runs: 6,
  },
  other: {
    bytes: 450 * mib,
    confidence: 'low',
    source: '300 to 600 MiB in public reports of idle torch processes',
    runs: null,
  },
};

interface AttentionPlans extends Origin {
  /** Code loaded with the first plan. */
  codeBytes: number;
  /** The driver allocates memory for plans in chunks of this size. */
  chunkBytes: number;
  /** Decode steps until the first chunk, and between two chunks. */
  series: readonly { first: number; every: number }[];
  /** Maximum decode steps of a measured run. */
  measuredSteps: number;
}

/**
 * Kernels that cuDNN generates and keeps for torch's fused attention in 16 bits, one per cache length
 * (cudnn_generated_fort_native_sdpa_… in a timeline), by architecture. From samples of the driver at 20 Hz over 511
 * decode steps, in chunks of 2 MiB: 65 KiB per length in one series and 22 KiB in another, at the same steps for three
 * models. A second repeat allocates nothing.
 */
export const attentionPlans: Readonly<Record<string, AttentionPlans>> = {
  Hopper: {
    codeBytes: 8 * mib,
    chunkBytes: 2 * mib,
    series: [
      { first: 14, every: 31.3 },
      { first: 71, every: 94.7 },
    ],
    measuredSteps: 511,
    source: 'and kernels that cuDNN generates for attention, one per length',
    runs: 3,
  },
};

/** The GEMM workspace that torch allocates for each handle and stream: aten/src/ATen/cuda/CublasHandlePool.cpp. */
export const cublasWorkspace: Readonly<Record<string, MemoryConstant>> = {
  Hopper: {
    bytes: 32 * mib,
    confidence: 'high',
    source: 'CublasHandlePool.cpp: 4096 KiB × 8 from compute capability 9.0',
    runs: null,
  },
  Blackwell: {
    bytes: 32 * mib,
    confidence: 'high',
    source: 'CublasHandlePool.cpp: 4096 KiB × 8 from compute capability 9.0',
    runs: null,
  },
  other: {
    bytes: 8_519_680,
    confidence: 'high',
    source: 'CublasHandlePool.cpp: 4096 KiB × 2 + 16 KiB × 8',
    runs: null,
  },
};

/**
 * Context of vLLM's worker when it starts to count (total − "Free memory on device … on startup", 0.26: init_snapshot
 * in v1/worker/gpu_worker.py), outside its share of the GPU. Code loaded later counts as non-torch memory.
 */
export const vllmContext: Readonly<Record<string, MemoryConstant>> = {
  Hopper: {
    bytes: 527 * mib,
    confidence: 'medium',
    source: 'vLLM 0.26 on an H200, in use before its first measurement',
    runs: 4,
  },
  other: {
    bytes: 450 * mib,
    confidence: 'low',
    source: '300 to 600 MiB in public reports of idle torch processes',
    runs: null,
  },
};

/**
 * Memory of a worker in a group before vLLM counts, without the context. It sets up NCCL first ("This ensures NCCL
 * buffers are allocated before we measure", init_device in v1/worker/gpu_worker.py, 0.26), so the buffers are outside
 * its share of the GPU.
 */
export const vllmGroupBuffers: MemoryConstant = {
  bytes: 932 * mib,
  confidence: 'medium',
  source:
    'NCCL before vLLM counts: 1459 MiB on each of two H200s less the context of one; vLLM 0.26, NCCL 2.28.9, without custom all-reduce',
  runs: 1,
};

/**
 * Memory outside torch, without the context: vLLM's log calls it non-torch memory. With vLLM 0.26 on an H200 it was 230
 * to 231 MiB in four runs of two models, eager and compiled. Public logs of 0.7 to 0.9 on other GPUs show 0.01 to 0.33
 * GiB.
 */
export const vllmNonTorch = {
  single: {
    bytes: 230 * mib,
    confidence: 'medium',
    source: "code loaded during vLLM's profiling run: 230 MiB on an H200, vLLM 0.26",
    runs: 4,
  },
  group: {
    bytes: 72 * mib,
    confidence: 'medium',
    source:
      "code loaded during vLLM's profiling run: 0.07 GiB on each of two H200s, vLLM 0.26; NCCL's buffers are allocated before it",
    runs: 1,
  },
  /** For versions that counted before setting up NCCL: up to 0.11 (1.38 GiB in its log of two H200s). */
  groupEarlier: {
    bytes: 0.55 * gib,
    confidence: 'medium',
    source: "public vLLM logs at tensor parallel 2: NCCL's buffers",
    runs: null,
  },
} as const satisfies Record<string, MemoryConstant>;

/** NCCL's buffers on each device of a group outside vLLM. */
export const ncclBuffers: MemoryConstant = {
  bytes: 842 * mib,
  confidence: 'medium',
  source:
    'two H200s with NCCL of torch 2.11: 883 MB per GPU, 384 MB at startup and the rest with the first prefill',
  runs: 2,
};

/** vLLM on a CPU, without tensors and cache: its front end and engine core once, and the code that each worker maps. */
export const vllmOnCpu = {
  processesBytes: 1845e6,
  workerBytes: 380e6,
  confidence: 'low',
  source:
    'vLLM 0.32.0 on a CPU: front end and engine core 1.85 GB resident, 0.38 GB of code in each worker, in runs of one and two ranks',
  runs: 2,
} as const;

export const vllmGraphs: MemoryConstant = {
  bytes: 0.5 * gib,
  confidence: 'low',
  source: 'public vLLM logs: "Graph capturing finished …, took" 0.2 to 1 GiB',
  runs: null,
};

/** Driver memory per CUDA graph: 913.5 MiB of Qwen2.5 7B minus its tensors, over 51 sizes × 30 graphs. */
export const vllmGraphBytes: MemoryConstant = {
  bytes: 0.133 * mib,
  confidence: 'low',
  source: 'one H200, vLLM 0.26',
  runs: 1,
};

/**
 * Memory per captured NCCL call on each GPU: 1403 MiB of Qwen2.5 7B on two H200s without custom all-reduce, minus the
 * 606 MiB of the same formula without calls, over 51 sizes × 2 × 57 all-reduces.
 */
export const vllmGraphCollective: MemoryConstant = {
  bytes: 0.137 * mib,
  confidence: 'low',
  source: 'two H200s, vLLM 0.26 with NCCL 2.28.9',
  runs: 1,
};

/** L2 cache size by architecture: of the H200 as nsys recorded it, else of an A100. */
export const l2Cache: Readonly<Record<string, MemoryConstant>> = {
  Hopper: {
    bytes: 60 * mib,
    confidence: 'high',
    source: 'l2CacheSize of an H200: 62914560',
    runs: null,
  },
  other: { bytes: 40 * mib, confidence: 'low', source: '4 MiB (T4) to 96 MiB (L40S)', runs: null },
};

/** Memory that torch's caching allocator reserves beyond what is allocated, as a share of KV cache and activations. */
export const allocatorReserveShare = {
  share: 0.4,
  confidence: 'low',
  source: 'free blocks between those in use: 0.25 to 0.73 of them in six models on an H200',
  runs: 6,
} as const;

/** A Python process that computes on the CPU, before it loads a model. */
export const pythonWithTorch: MemoryConstant = {
  bytes: 660e6,
  confidence: 'low',
  source:
    'Python 3.11 with torch 2.11 and transformers 5.17 on a CPU: 0.64 to 0.67 GB resident before the model',
  runs: null,
};

/** Node.js with ONNX Runtime loaded: file-backed pages, and what Node.js allocates before the engine. */
export const onnxRuntime: MemoryConstant = {
  bytes: 93e6,
  confidence: 'medium',
  source: 'pages of code and files of the embedded engine with a 24 M model: 93 MB',
  runs: 4,
};

/** Other memory of the embedded engine's process: heap, threads, and an arena that grows in powers of two. */
export const onnxArena = {
  fixedBytes: 43e6,
  perKvByte: 3.3,
  perActivationByte: 1,
  confidence: 'low',
  source: '43 MB + 3.3 × cache (old and new at once, in an arena that doubles) + activations',
  runs: 4,
} as const;

export const byArchitecture = (
  table: Readonly<Record<string, MemoryConstant>>,
  architecture: string | null | undefined,
): MemoryConstant => table[generationIn(table, architecture)]!;

/** The row of a table for a generation; `other` for generations without a row. */
export function generationIn(table: object, architecture: string | null | undefined): string {
  const generation = architecture?.split(' ')[0] ?? 'other';
  return Object.hasOwn(table, generation) ? generation : 'other';
}

/**
 * GiB that a process can allocate on a GPU (cudaMemGetInfo), by the driver's name for it, from torch's out-of-memory
 * messages ("total capacity of 22.06 GiB") and vLLM's logs. ECC and the driver's reserve are already subtracted.
 */
export const allocatableGib: Readonly<Record<string, number>> = {
  'NVIDIA A10': 22.06,
  'NVIDIA A10G': 22.06,
  'NVIDIA A30': 23.5,
  'NVIDIA A40': 44.34,
  'NVIDIA A100-SXM4-40GB': 39.39,
  'NVIDIA A100-PCIE-40GB': 39.39,
  'NVIDIA A100-SXM4-80GB': 79.15,
  'NVIDIA A100 80GB PCIe': 79.15,
  'NVIDIA B200': 178.35,
  'NVIDIA GeForce RTX 3090': 23.57,
  'NVIDIA GeForce RTX 4090': 23.52,
  'NVIDIA GeForce RTX 5090': 31.35,
  'NVIDIA H100 80GB HBM3': 79.1,
  'NVIDIA H100 PCIe': 79.1,
  'NVIDIA H100 NVL': 93.0,
  'NVIDIA H200': 139.8,
  'NVIDIA L4': 22.03,
  'NVIDIA L40': 44.39,
  'NVIDIA L40S': 44.39,
  'NVIDIA RTX A6000': 47.53,
  'Tesla T4': 14.56,
  'Tesla V100-SXM2-16GB': 15.77,
  'Tesla V100-SXM2-32GB': 31.73,
  'AMD Instinct MI300X': 191.98,
};

/** For other GPUs: the lowest share of the data sheet's memory in the table (a T4). */
export const allocatableShare = 0.91;

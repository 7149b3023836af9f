/** Limits of a multiprocessor by compute capability (CUDA C++ Programming Guide, table "Technical Specifications"). */
interface Multiprocessor {
  sharedBytes: number;
  threads: number;
  blocks: number;
}

const registersPerSm = 65_536;
const sheets: Record<string, Multiprocessor> = {
  '7.0': { sharedBytes: 96 * 1024, threads: 2048, blocks: 32 },
  '7.5': { sharedBytes: 64 * 1024, threads: 1024, blocks: 16 },
  '8.0': { sharedBytes: 164 * 1024, threads: 2048, blocks: 32 },
  '8.6': { sharedBytes: 100 * 1024, threads: 1536, blocks: 16 },
  '8.9': { sharedBytes: 100 * 1024, threads: 1536, blocks: 24 },
  '9.0': { sharedBytes: 228 * 1024, threads: 2048, blocks: 32 },
  '10.0': { sharedBytes: 228 * 1024, threads: 2048, blocks: 32 },
  '12.0': { sharedBytes: 100 * 1024, threads: 1536, blocks: 24 },
};
/** Shared memory per block reserved by the driver. */
const reservedSharedBytes = (capability: string): number => (Number.parseFloat(capability) >= 8 ? 1024 : 0);

interface Launch {
  blocks: number;
  /** Threads per block. */
  threads: number;
  registers: number | null;
  shared_mem_bytes: number | null;
}

/** Blocks of a launch that are resident per multiprocessor; null for an unknown GPU. */
export function blocksPerSm(launch: Launch, capability: string | null): number | null {
  const sm = capability === null ? undefined : sheets[capability];
  if (capability === null || !sm) return null;
  const warps = Math.ceil(launch.threads / 32);
  // Registers are allocated per warp, in units of 256.
  const byRegisters = launch.registers
    ? Math.floor(registersPerSm / (warps * Math.ceil((launch.registers * 32) / 256) * 256))
    : Infinity;
  const byShared = launch.shared_mem_bytes
    ? Math.floor(sm.sharedBytes / (launch.shared_mem_bytes + reservedSharedBytes(capability)))
    : Infinity;
  return Math.max(1, Math.min(sm.blocks, Math.floor(sm.threads / (warps * 32)), byRegisters, byShared));
}

/**
 * Waves of blocks that a launch needs, and the used share of all slots: waves / ⌈waves⌉ (NVIDIA, Matrix Multiplication
 * Background User's Guide, wave quantization). Null for an unknown GPU.
 */
export function wavesOf(
  launch: Launch,
  smCount: number,
  capability: string | null,
): { waves: number; efficiency: number } | null {
  const blocksPerMultiprocessor = blocksPerSm(launch, capability);
  if (blocksPerMultiprocessor === null || launch.blocks < 1) return null;
  const waves = launch.blocks / (smCount * blocksPerMultiprocessor);
  return { waves, efficiency: waves / Math.ceil(waves) };
}

import process from 'node:process';

/** SCHED_GETATTR, SCHED_SETATTR (arch/x86/entry/syscalls/syscall_64.tbl, include/uapi/asm-generic/unistd.h). */
const calls: Partial<Record<NodeJS.Architecture, { set: number; get: number }>> = {
  x64: { set: 314, get: 315 },
  arm64: { set: 274, get: 275 },
};

/** struct sched_attr, first version (include/uapi/linux/sched/types.h); sched_runtime is at offset 24. */
const attributes = { bytes: 48, runtime: 24 } as const;
const sliceNs = 100_000n;

/**
 * Asks Linux to run this thread in slices of 0.1 ms. A thread with short slices gets the core sooner after waking
 * (sched_setattr(2), since 6.12), so that a chunk is stamped sooner if a server or another program has the core. It
 * needs no privilege and takes no more time. On other systems nothing changes.
 * @returns whether the kernel accepted it
 */
export async function askForShortSlices(): Promise<boolean> {
  const call = calls[process.arch];
  if (process.platform !== 'linux' || call === undefined) return false;
  try {
    const { default: koffi } = await import('koffi');
    const system = koffi.load(null).func('long syscall(long number, ...)');
    const attr = Buffer.alloc(attributes.bytes);
    attr.writeUInt32LE(attributes.bytes, 0);
    const types = ['int', 'void *', 'uint'];
    const encode = (values: [number, Buffer, ...number[]]) =>
      values.flatMap((value, index) => [types[index] ?? 'uint', value]);
    // Keeps the thread's other attributes (policy, nice value).
    if (system(call.get, ...encode([0, attr, attributes.bytes, 0])) !== 0) return false;
    attr.writeBigUInt64LE(sliceNs, attributes.runtime);
    return system(call.set, ...encode([0, attr, 0])) === 0;
  } catch {
    // Without syscall() in the C library, or without FFI, stamps are as late as the scheduler makes them.
    return false;
  }
}

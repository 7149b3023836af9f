import type { AllocatorMoment, MemoryResult, MemorySeries } from '../model/documents/memory-result.js';

/** Lines of the timeline: GPUs if there are any, else the host. */
export function mainSeries({ timeline: { series } }: MemoryResult): MemorySeries[] {
  const used = series.filter(({ kind }) => kind === 'used');
  return used.length > 0 ? used : series;
}

/** Devices with allocator reports, null for the host. */
export const allocatorDevices = ({ allocator }: MemoryResult): (number | null)[] =>
  [...new Set(allocator.map(({ gpu }) => gpu))].toSorted((a, b) => (a ?? -1) - (b ?? -1));

/** Parts of allocated memory, from the bottom of the stack. */
export const allocatedParts = ['model_weights', 'kv_cache', 'activations', 'allocator_reserve'] as const;

/** Moments of one device in time order; if several ranks use it, those of the first rank. */
export function momentsOf({ allocator }: MemoryResult, device: number | null): AllocatorMoment[] {
  const samples = allocator.filter(({ gpu }) => gpu === device);
  const rank = Math.min(...samples.map((sample) => sample.rank));
  return samples.filter((sample) => sample.rank === rank).toSorted((a, b) => a.t_s - b.t_s);
}

/** Bytes of a part at a moment: its share of the allocated peak, and memory reserved in addition. */
export function allocatedPartBytes(moment: AllocatorMoment, part: (typeof allocatedParts)[number]): number {
  const allocated = moment.max_allocated_bytes ?? moment.allocated_bytes ?? 0;
  switch (part) {
    case 'model_weights':
      return moment.weights_bytes ?? 0;
    case 'kv_cache':
      return moment.kv_cache_bytes ?? 0;
    case 'activations':
      return Math.max(0, moment.other_bytes ?? allocated);
    case 'allocator_reserve':
      return Math.max(0, (moment.reserved_bytes ?? allocated) - allocated);
  }
}

/** `…/modeling_llama.py:212 forward` with only the last path part. */
export const shortPlace = (operator: string): string => operator.replace(/^.*\/(?=[^/]+:\d)/, '');

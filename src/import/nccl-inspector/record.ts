import { z } from 'zod';
import { parseJson } from '../../model/parse-json.js';
import type { Row } from '../../model/tables.js';

const count = z.number().int().nonnegative().max(Number.MAX_SAFE_INTEGER);
/** Limit of a time, µs, so that ns fit in a BIGINT. */
const micros = count.max(9e15);
const rate = z.union([z.number().nonnegative().max(1e9), z.literal('nan')]);
const smallCount = z.number().int().nonnegative().max(1e7);
const eventTimes = z
  .object({
    coll_start_ts: micros.optional(),
    p2p_start_ts: micros.optional(),
    kernel_events: z.array(z.object({ kernel_start_ts: micros })).default([]),
  })
  .optional();

const operation = z.string().regex(/^[A-Za-z]\w{0,40}$/);
const timedBy = z.enum(['kernel_gpu', 'kernel_cpu', 'collective_cpu', 'unknown']).default('unknown');

/**
 * One line of NCCL Inspector, one operation on one rank (github.com/NVIDIA/nccl, plugins/profiler/inspector, before
 * 2.29.7 ext-profiler/inspector; read at 2.30.7):
 * ```
 * {"header":{"id":"0x7f8c496ae9f661","comm_name":"TP","rank":2,"n_ranks":8,"nnodes":1},
 *  "metadata":{"inspector_output_format_version":"v4.0","dump_timestamp_us":…,"hostname":"…","pid":…,…},
 *  "coll_perf":{"coll":"AllReduce","coll_sn":1407,"coll_msg_size_bytes":…,"coll_exec_time_us":61974,
 *   "coll_timing_source":"kernel_gpu","coll_algobw_gbs":277.210914,"coll_busbw_gbs":485.119099}}
 * ```
 * Semantics of the fields, from the source:
 * - `id` is the hash of the communicator, the same on all its ranks. `comm_name` comes with 2.30, "unknown" for none.
 * - `coll_sn` is NCCL's counter per communicator and function (src/plugin/profiler.cc), so AllReduce 7 and AllGather 7 are
 *   two operations. The plugin counts Send and Recv (`p2p_perf`, from 2.30) together, separately on each rank.
 * - Up to 2.29 a dump writes the last completed operation of each communicator. From 2.30 it writes all that a ring holds
 *   (1024 unless set; the oldest are overwritten), and leaves out messages below 8192 bytes and operations that no GPU
 *   clock timed; gaps in `coll_sn` are therefore operations that were not recorded. The version is "v4.0" in both.
 * - The size is count × size of the type: for AllGather and ReduceScatter the part of one rank (total traffic is n_ranks times that).
 * - The time is the longest of the channels' kernels, in whole µs, truncated: by the GPU's clock (kernel_gpu), else the host's
 *   (kernel_cpu), else from call to end on the host (collective_cpu). 0 means none. It includes waiting for other ranks.
 * - Bandwidths are as nccl-tests defines them (doc/PERFORMANCE.md), in GB/s of 10⁹; "nan" is written as a text.
 * - `dump_timestamp_us` is gettimeofday of the host when the line was written; 0 where that failed.
 * - With NCCL_INSPECTOR_DUMP_VERBOSE=1 `event_trace_ts` has host times of the channels' kernels.
 */
const lineSchema = z.object({
  header: z
    .object({
      id: z.string().min(1).max(64),
      comm_name: z.string().max(256).optional(),
      rank: smallCount,
      n_ranks: smallCount.positive(),
      nnodes: smallCount.optional(),
    })
    .refine(({ rank, n_ranks }) => rank < n_ranks),
  metadata: z.object({
    inspector_output_format_version: z.string().max(64),
    dump_timestamp_us: micros,
    hostname: z.string().max(256).optional(),
    pid: count.optional(),
  }),
  coll_perf: z
    .object({
      coll: operation,
      coll_sn: count,
      coll_msg_size_bytes: count,
      coll_exec_time_us: micros,
      coll_timing_source: timedBy,
      coll_algobw_gbs: rate,
      coll_busbw_gbs: rate,
      event_trace_ts: eventTimes,
    })
    .optional(),
  p2p_perf: z
    .object({
      p2p: operation,
      p2p_sn: count,
      p2p_peer: z.number().int().min(-1).max(1e7),
      p2p_msg_size_bytes: count,
      p2p_exec_time_us: micros,
      p2p_timing_source: timedBy,
      p2p_algobw_gbs: rate,
      p2p_busbw_gbs: rate,
      event_trace_ts: eventTimes,
    })
    .optional(),
});

export interface InspectorRecord {
  /** Without the keys of its capture. */
  row: Row<'collectives'>;
  /** Times are µs since 1970. */
  writtenUs: number | null;
  startUs: number | null;
  version: string;
}

/** What every line of NCCL Inspector has. */
const recordShape = z.object({ header: z.looseObject({}), metadata: z.looseObject({}) });

/** unreadable: not one operation of NCCL Inspector; impossible: one with invalid values. */
export type SkipReason = 'unreadable' | 'impossible';

export function recordOf(text: string): InspectorRecord | SkipReason {
  let value: unknown;
  try {
    value = parseJson(text);
  } catch {
    return 'unreadable';
  }
  const parsed = lineSchema.safeParse(value);
  if (!parsed.success) return recordShape.safeParse(value).success ? 'impossible' : 'unreadable';
  const { header, metadata, coll_perf: coll, p2p_perf: p2p } = parsed.data;
  // Both or neither: not one operation.
  if ((coll === undefined) === (p2p === undefined)) return 'unreadable';
  const { event_trace_ts: trace, ...performance } = coll ? collectiveFields(coll) : p2pFields(p2p!);
  const startUs = [
    ...(trace?.kernel_events ?? []).map((event) => event.kernel_start_ts),
    trace?.coll_start_ts ?? trace?.p2p_start_ts ?? 0,
  ].find((us) => us > 0);
  return {
    row: {
      host: metadata.hostname ?? null,
      pid: metadata.pid ?? null,
      rank: header.rank,
      communicator: header.id,
      communicator_name: header.comm_name === 'unknown' ? null : (header.comm_name ?? null),
      ranks: header.n_ranks,
      nodes: header.nnodes ?? null,
      ...performance,
    },
    writtenUs: metadata.dump_timestamp_us || null,
    startUs: startUs ?? null,
    version: metadata.inspector_output_format_version,
  };
}

type Line = z.infer<typeof lineSchema>;

const collectiveFields = (coll: NonNullable<Line['coll_perf']>) => ({
  operation: coll.coll,
  sequence: coll.coll_sn,
  peer: null,
  bytes: coll.coll_msg_size_bytes,
  dur_ns: nanoseconds(coll.coll_exec_time_us),
  timed_by: coll.coll_timing_source,
  algorithm_bytes_per_s: bytesPerSecond(coll.coll_algobw_gbs),
  bus_bytes_per_s: bytesPerSecond(coll.coll_busbw_gbs),
  event_trace_ts: coll.event_trace_ts,
});

const p2pFields = (p2p: NonNullable<Line['p2p_perf']>) => ({
  operation: p2p.p2p,
  sequence: p2p.p2p_sn,
  peer: p2p.p2p_peer,
  bytes: p2p.p2p_msg_size_bytes,
  dur_ns: nanoseconds(p2p.p2p_exec_time_us),
  timed_by: p2p.p2p_timing_source,
  algorithm_bytes_per_s: bytesPerSecond(p2p.p2p_algobw_gbs),
  bus_bytes_per_s: bytesPerSecond(p2p.p2p_busbw_gbs),
  event_trace_ts: p2p.event_trace_ts,
});

const nanoseconds = (us: number): number | null => (us === 0 ? null : us * 1000);
/** Without a time the plugin writes 0. */
const bytesPerSecond = (gigabytesPerSecond: number | 'nan'): number | null =>
  gigabytesPerSecond === 'nan' || gigabytesPerSecond === 0 ? null : gigabytesPerSecond * 1e9;

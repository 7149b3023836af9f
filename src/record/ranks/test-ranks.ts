import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { seededRandom } from '../../model/random.js';

/** Faults planted into the traces of a run; everything else is equal on all ranks up to 1 % of noise. */
export interface PlantedRun {
  seed: number;
  ranks: number;
  steps?: number;
  layers?: number;
  /** Ranks of a tensor-parallel group; default half of the ranks. */
  tensorRanks?: number;
  /** Maximum clock offset, ns, and drift, parts per million. */
  offsetNs?: number;
  driftPpm?: number;
  /** Every attention of this rank takes `us` µs longer. */
  slowRank?: { rank: number; us: number };
  /** The exchange of this rank's tensor-parallel group takes `factor` times as long. */
  slowLink?: { rank: number; factor: number };
  /** The rank's expert receives `factor` times its even share of the tokens. */
  hotExpert?: { rank: number; factor: number };
  /** DeepEP exchanges the tokens: kernels that name neither group nor size. */
  deepEp?: boolean;
  /** Ranks are stages of a pipeline with this many micro-batches per step; the last stage sends the tokens back to the first. */
  microBatches?: number;
  /** Each micro-batch is a step of its own, and stages send and receive between their steps. */
  stepPerMicroBatch?: boolean;
  /**
   * The first half of the ranks computes prefills, and sends this many bytes of KV cache per step to the decoding rank of the second half.
   */
  kvCacheBytes?: number;
  /** The capture of a rank lacks its first or last steps. */
  window?: readonly { rank: number; without: 'first' | 'last'; steps: number }[];
  missing?: readonly number[];
  truncated?: readonly number[];
}

/** Clock of a rank: it reports true time + offset + drift × true time. */
export interface RankClock {
  offset_ns: number;
  drift_ppm: number;
}

export interface Kernel {
  name: string;
  start: number;
  dur: number;
  stream: number;
  call?: Call;
}

interface Call {
  name: string;
  group: string;
  text: string;
  ranks: readonly number[];
  sent: number;
  received: number;
  sequence: number;
  /** The other rank of a send or receive, which have no sequence number. */
  peer?: number;
}

/** Events of one rank in its own clock, ns. */
export interface RankEvents {
  rank: number;
  clock: RankClock;
  kernels: Kernel[];
  /** Launch of the kernel with the same index. */
  launches: number[];
  steps: { start: number; end: number }[];
  /** Name of its steps without the number. */
  stepName: string;
}

/** Maximum difference of the ends of one collective between ranks, ns. */
export const endJitterNs = 1000;
/** Wall clock of true time 0. */
export const epochNs = 1_790_000_000_000_000_000n;
/** Bandwidth, B/s, and latency, ns, of the generated links. */
const busBytesPerS = 300e9;
const latencyNs = 12_000;
export const tensorBytes = 4 * 2 ** 20;
const tokenBytes = 2 ** 20;
const activationBytes = 2 ** 20;

/**
 * Simulates a run of a mixture-of-experts model: per layer attention, an all-reduce of the tensor-parallel group, tokens to the experts of
 * all ranks (all-to-all, concurrent with a shared expert), the experts, and the tokens back.
 */
export function playRanks(planted: PlantedRun): RankEvents[] {
  const run: RankEvents[] = [];
  for (const step of playSteps(planted))
    step.forEach((rankEvents, index) => {
      const to = (run[index] ??= { ...rankEvents, kernels: [], launches: [], steps: [] });
      to.kernels.push(...rankEvents.kernels);
      to.launches.push(...rankEvents.launches);
      to.steps.push(...rankEvents.steps);
    });
  return run;
}

/** The same run step by step: a run of many ranks does not fit in memory. */
export function* playSteps(planted: PlantedRun): Generator<RankEvents[]> {
  const { seed, ranks, steps = 8, layers = 4, offsetNs = 5_000_000, driftPpm = 20 } = planted;
  const size = planted.tensorRanks ?? Math.max(2, ranks / 2);
  const random = seededRandom(seed);
  const noisy = (ns: number) => ns * (1 + 0.01 * (2 * random() - 1));
  const all = Array.from({ length: ranks }, (_, rank) => rank);
  const events: RankEvents[] = all.map((rank) => ({
    rank,
    clock: {
      offset_ns: rank === 0 ? 0 : Math.round(offsetNs * (2 * random() - 1)),
      drift_ppm: rank === 0 ? 0 : driftPpm * (2 * random() - 1),
    },
    kernels: [],
    launches: [],
    steps: [],
    stepName:
      planted.stepPerMicroBatch || (planted.kvCacheBytes !== undefined && rank < ranks / 2)
        ? 'prefill'
        : 'decode_step',
  }));
  const free = all.map(() => 0);
  const launched = all.map(() => 0);
  const sequences = new Map<string, number>();
  const add = (rank: number, kernel: Kernel) => {
    events[rank]!.kernels.push(kernel);
    launched[rank]! += 3000;
    events[rank]!.launches.push(Math.min(launched[rank]!, kernel.start - 4000));
  };
  const compute = (rank: number, name: string, ns: number) => {
    const dur = Math.round(noisy(ns));
    add(rank, { name, start: free[rank]! + 800, dur, stream: 7 });
    free[rank]! += 800 + dur;
  };
  const exchange = (
    members: readonly number[],
    call: Omit<Call, 'ranks' | 'sequence' | 'sent' | 'received'>,
    wire: number,
    bytes: (rank: number) => [sent: number, received: number],
    next?: { name: string; ns: number },
  ) => {
    const sequence = (sequences.get(call.group) ?? 0) + 1;
    sequences.set(call.group, sequence);
    const isDeepEp = planted.deepEp === true && call.group === 'ep';
    const arrivals = members.map((rank) => free[rank]! + 800);
    const end = Math.max(...arrivals) + noisy(wire);
    members.forEach((rank, index) => {
      const start = arrivals[index]!;
      const jittered = Math.round(end + endJitterNs * (random() - 0.5));
      const [sent, received] = bytes(rank);
      add(rank, {
        name: isDeepEp
          ? `void deep_ep::intranode::${next ? 'dispatch<8, 768, 8192>(' : 'combine<__nv_bfloat16, 8, 768, 4096>('}int4*)`
          : `ncclDevKernel_${call.name.startsWith('all_to_all') ? 'SendRecv' : 'AllReduce_Sum_bf16_RING_LL'}(ncclDevKernelArgsStorage<4096ul>)`,
        start,
        dur: jittered - start,
        stream: 20,
        ...(!isDeepEp && { call: { ...call, ranks: members, sent, received, sequence } }),
      });
      if (next)
        add(rank, { name: next.name, start: start + 200, dur: Math.round(noisy(next.ns)), stream: 7 });
      free[rank] = jittered;
    });
  };
  const gemm = 'nvjet_tst_128x64_64x8_2x1_v_bz_TNT';
  const sent = all.map(() => 0);
  /** A send starts when its data is ready, a receive when its rank is free; both end when the data has arrived. */
  const transfer = (from: number, to: number, bytes: number) => {
    const starts = [Math.max(free[from]!, sent[from]!), free[to]!].map((ns) => ns + 800);
    const end = Math.max(...starts) + noisy(bytes / (busBytesPerS / 1e9) + latencyNs);
    [from, to].forEach((rank, index) => {
      const jittered = Math.round(end + endJitterNs * (random() - 0.5));
      const call = { name: index === 0 ? 'send' : 'recv', group: 'pp', text: 'pp', ranks: all, sequence: 0 };
      add(rank, {
        name: 'ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)',
        start: starts[index]!,
        dur: jittered - starts[index]!,
        stream: 20 + index,
        call: { ...call, sent: bytes, received: bytes, peer: index === 0 ? to : from },
      });
      if (index === 0) sent[rank] = jittered;
      else free[rank] = jittered;
    });
  };
  const disaggregated = (bytes: number) => {
    for (let rank = 0; rank < ranks / 2; rank++) {
      for (let layer = 0; layer < layers; layer++) compute(rank, gemm, 90_000);
      transfer(rank, rank + ranks / 2, bytes);
      for (let layer = 0; layer < layers; layer++) compute(rank + ranks / 2, gemm, 30_000);
    }
  };
  const pipeline = (microBatches: number) => {
    for (let batch = 0; batch < microBatches; batch++)
      for (const rank of all) {
        if (rank > 0) transfer(rank - 1, rank, activationBytes);
        const { launches, steps: rankSteps } = events[rank]!;
        const first = launches.length;
        for (let layer = 0; layer < layers; layer++)
          compute(rank, gemm, 90_000 + (planted.slowRank?.rank === rank ? 1000 * planted.slowRank.us : 0));
        if (planted.stepPerMicroBatch)
          rankSteps.push({ start: launches[first]! - 500, end: launches.at(-1)! + 2500 });
      }
    transfer(ranks - 1, 0, 4096);
  };
  const experts = () => {
    for (let layer = 0; layer < layers; layer++) {
      const { slowRank, slowLink, hotExpert } = planted;
      for (const rank of all)
        compute(rank, gemm, 90_000 + (slowRank?.rank === rank ? 1000 * slowRank.us : 0));
      for (let from = 0; from < ranks; from += size) {
        const members = all.slice(from, from + size);
        const wire = (tensorBytes * 2 * (size - 1)) / size / (busBytesPerS / 1e9) + latencyNs;
        const slow = slowLink && members.includes(slowLink.rank) ? slowLink.factor : 1;
        exchange(members, { name: 'allreduce', group: `tp${from / size}`, text: 'tp' }, wire * slow, () => [
          tensorBytes,
          tensorBytes,
        ]);
      }
      for (const rank of all) compute(rank, 'vectorized_elementwise_kernel', 6000);
      const hot = hotExpert?.factor ?? 1;
      const cold = (ranks - hot) / (ranks - 1);
      const share = (rank: number) => (hotExpert ? (rank === hotExpert.rank ? hot : cold) : 1);
      const largestShare = Math.max(...all.map(share));
      const wire = (largestShare * tokenBytes * (ranks - 1)) / ranks / (busBytesPerS / 1e9) + latencyNs;
      const tokens = (rank: number) => Math.round((share(rank) * tokenBytes) / 2) * 2;
      const call = { name: 'all_to_allv', group: 'ep', text: 'ep' };
      exchange(all, call, wire, (rank) => [tokenBytes, tokens(rank)], {
        name: 'void cutlass::Kernel2<shared_expert>',
        ns: 9000,
      });
      for (const rank of all) compute(rank, 'fused_moe_kernel', 70_000 * share(rank));
      exchange(all, call, wire, (rank) => [tokens(rank), tokenBytes]);
    }
  };
  for (let step = 0; step < steps; step++) {
    const begins = all.map((rank) => free[rank]! + 30_000 + 5000 * random());
    for (const rank of all) {
      free[rank] = begins[rank]! + 12_000;
      launched[rank] = begins[rank]!;
    }
    if (planted.microBatches !== undefined) pipeline(planted.microBatches);
    else if (planted.kvCacheBytes !== undefined) disaggregated(planted.kvCacheBytes);
    else experts();
    all.forEach((rank) => {
      free[rank]! += 3000;
      if (!planted.stepPerMicroBatch) events[rank]!.steps.push({ start: begins[rank]!, end: free[rank]! });
    });
    yield events.map((rankEvents) => inOwnClock(rankEvents));
    for (const rankEvents of events) Object.assign(rankEvents, { kernels: [], launches: [], steps: [] });
  }
}

function inOwnClock({ rank, clock, kernels, launches, steps, stepName }: RankEvents): RankEvents {
  const onClock = (t: number) => Math.round(t + clock.offset_ns + 1e-6 * clock.drift_ppm * t) + 20_000_000;
  return {
    rank,
    clock,
    stepName,
    kernels: kernels.map((kernel) => ({
      ...kernel,
      start: onClock(kernel.start),
      dur: onClock(kernel.start + kernel.dur) - onClock(kernel.start),
    })),
    launches: launches.map(onClock),
    steps: steps.map(({ start, end }) => ({ start: onClock(start), end: onClock(end) })),
  };
}

const us = (ns: number): number => ns / 1000;

/** Events as torch.profiler writes them; the trace already has `before` events. */
export function kinetoRows(
  { rank, kernels, launches, steps, stepName }: RankEvents,
  before: { kernels: number; steps: number } = { kernels: 0, steps: 0 },
): object[] {
  const pid = 1000 + rank;
  const device = rank % 8;
  const rows: object[] = steps.map(({ start, end }, step) => ({
    ph: 'X',
    cat: 'user_annotation',
    name: `${stepName}_${before.steps + step}`,
    pid,
    tid: pid,
    ts: us(start),
    dur: us(end - start),
    args: {},
  }));
  kernels.forEach(({ name, start, dur, stream, call }, index) => {
    const correlation = before.kernels + index + 1;
    rows.push({
      ph: 'X',
      cat: 'cuda_runtime',
      name: 'cudaLaunchKernel',
      pid,
      tid: pid,
      ts: us(launches[index]!),
      dur: 2,
      args: { correlation },
    });
    rows.push({
      ph: 'X',
      cat: 'kernel',
      name,
      pid: device,
      tid: stream,
      ts: us(start),
      dur: us(dur),
      args: {
        device,
        context: 1,
        stream,
        correlation,
        grid: [528, 1, 1],
        block: [256, 1, 1],
        ...(call && {
          'Collective name': call.name,
          'In msg nelems': call.sent / 2,
          'Out msg nelems': call.received / 2,
          'Group size': call.ranks.length,
          dtype: 'BFloat16',
          'Process Group Name': call.group,
          'Process Group Description': call.text,
          'Process Group Ranks': `[${call.ranks.join(', ')}]`,
          ...(call.peer === undefined
            ? { Seq: call.sequence }
            : { [call.name === 'send' ? 'Dst Rank' : 'Src Rank']: call.peer }),
        }),
      },
    });
  });
  return rows;
}

/** Metadata of a trace in addition to its events. */
export const kinetoHead = (rank: number, ranks: number): object => ({
  schemaVersion: 1,
  deviceProperties: [
    {
      id: 0,
      name: 'NVIDIA H100 80GB HBM3',
      totalGlobalMem: 85_017_493_504,
      numSms: 132,
      computeMajor: 9,
      computeMinor: 0,
    },
  ],
  distributedInfo: { backend: 'nccl', rank, world_size: ranks, pg_count: 3, nccl_version: '2.27.5' },
  baseTimeNanoseconds: Number(epochNs),
});

export const kinetoFile = (folder: string, rank: number): string =>
  join(folder, `trace_rank${String(rank).padStart(4, '0')}.json.gz`);

/** Writes rank<r>.json.gz of each rank that is not missing. @returns the simulated events */
export function writeKinetoRanks(folder: string, planted: PlantedRun): RankEvents[] {
  mkdirSync(folder, { recursive: true });
  const events = playRanks(planted);
  for (const rankEvents of events) {
    if (planted.missing?.includes(rankEvents.rank)) continue;
    const visibleEvents = inWindow(rankEvents, planted.window ?? []);
    const trace = { ...kinetoHead(rankEvents.rank, planted.ranks), traceEvents: kinetoRows(visibleEvents) };
    const content = gzipSync(JSON.stringify(trace), { level: 1 });
    const cut = planted.truncated?.includes(rankEvents.rank)
      ? Math.round(0.6 * content.length)
      : content.length;
    writeFileSync(kinetoFile(folder, rankEvents.rank), content.subarray(0, cut));
  }
  return events;
}

function inWindow(rankEvents: RankEvents, windows: NonNullable<PlantedRun['window']>): RankEvents {
  const cut = windows.find(({ rank }) => rank === rankEvents.rank);
  if (!cut) return rankEvents;
  const steps =
    cut.without === 'first' ? rankEvents.steps.slice(cut.steps) : rankEvents.steps.slice(0, -cut.steps);
  const [from, to] = [steps[0]!.start, steps.at(-1)!.end];
  const inside = rankEvents.launches.map((startNs) => startNs >= from && startNs < to);
  const onlyInside = <T>(list: readonly T[]) => list.filter((_, index) => inside[index]);
  return {
    ...rankEvents,
    steps,
    kernels: onlyInside(rankEvents.kernels),
    launches: onlyInside(rankEvents.launches),
  };
}

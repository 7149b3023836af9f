import type { Stall } from '../../model/documents/counters.js';
import { type Metrics, valueOf } from './metrics.js';

const perIssue = /^smsp__average_warps_issue_stalled_(\w+?)_per_issue_active\.ratio$/;
const sampled = /^smsp__pcsamp_warps_issue_stalled_(\w+?)$/;
const maxShown = 5;

/**
 * Warp stall reasons. A warp takes `smsp__average_warp_latency_per_inst_issued` cycles from one instruction to the
 * next. The ratios are the warps in each state per issue-active cycle and sum to it. "selected" is the issue cycle: not
 * a stall, but part of the sum. Without the ratios, program-counter samples give the shares.
 */
export function stallsOf(metrics: Metrics): { stalls: Stall[]; missing: string | null } {
  const ratios = stallStates(metrics, perIssue);
  if (ratios.length > 0) {
    const sum = ratios.reduce((total, { value }) => total + value, 0);
    const latency = valueOf(metrics, 'smsp__average_warp_latency_per_inst_issued.ratio') ?? sum;
    return { stalls: largestStalls(ratios, latency, true), missing: null };
  }
  const samples = stallStates(metrics, sampled).filter(({ reason }) => !reason.endsWith('_not_issued'));
  const total = samples.reduce((sum, { value }) => sum + value, 0);
  if (total > 0) return { stalls: largestStalls(samples, total, false), missing: null };
  return {
    stalls: [],
    missing: 'ncu did not collect warp states (sections WarpStateStats or SourceCounters, --set full)',
  };
}

function stallStates(metrics: Metrics, pattern: RegExp): { reason: string; value: number }[] {
  return [...metrics].flatMap(([name, { value }]) => {
    const reason = pattern.exec(name)?.[1];
    return reason === undefined ? [] : [{ reason, value }];
  });
}

function largestStalls(list: { reason: string; value: number }[], total: number, inCycles: boolean): Stall[] {
  if (total <= 0) return [];
  return list
    .filter(({ reason, value }) => reason !== 'selected' && value > 0)
    .sort((x, y) => y.value - x.value)
    .slice(0, maxShown)
    .map(({ reason, value }) => ({
      reason,
      share: value / total,
      cycles: inCycles ? value : null,
      meaning: meanings[reason] ?? 'see the Nsight Compute profiling guide, warp states',
    }));
}

/** Nsight Compute profiling guide, "Warp Stall Reasons". */
const meanings: Record<string, string> = {
  barrier: 'waits for the other warps of its block at a barrier',
  branch_resolving: 'waits for a branch target',
  dispatch_stall: 'the dispatcher held the instruction back',
  drain: 'waits for its last stores at the exit',
  gmma: 'waits for a warpgroup matrix instruction',
  warpgroup_arrive: 'waits for the other warps of its warpgroup',
  imc_miss: 'waits for a constant cache miss',
  lg_throttle: 'the queue for global and local memory is full',
  long_scoreboard: 'waits for data from global or local memory (L1TEX)',
  math_pipe_throttle: 'the arithmetic pipe it needs is busy',
  membar: 'waits for a memory barrier',
  mio_throttle: 'the queue for shared memory and special functions is full',
  misc: 'other reasons',
  no_instruction: 'waits for instructions (cache miss, jump, or the kernel is too short)',
  no_instructions: 'waits for instructions (cache miss, jump, or the kernel is too short)',
  not_selected: 'ready, another warp was issued: there are enough warps',
  short_scoreboard: 'waits for data from shared memory or a special function',
  sleeping: 'all its threads sleep or have ended',
  tex_throttle: 'the queue for the texture unit is full',
  wait: 'fixed latency of the instruction before',
};

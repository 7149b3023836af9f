import type { PointCounts, PointOutcome, PointPlan } from './run-point.js';

/** A thread's share of a load, which starts when every thread is ready. */
export type ThreadPlan = Omit<PointPlan, 'begin_ns'>;

export type LoadRequest =
  | { type: 'prepare'; plan: ThreadPlan }
  | { type: 'begin'; begin_ns: number }
  | { type: 'stop' };

export type LoadReply =
  | { type: 'ready' }
  | { type: 'progress'; counts: PointCounts }
  | { type: 'outcome'; outcome: PointOutcome }
  | { type: 'error'; text: string };

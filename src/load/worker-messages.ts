import type { PointOutcome, PointPlan } from './run-point.js';

export type LoadRequest = { type: 'run'; plan: PointPlan } | { type: 'stop' };

export type LoadReply =
  | { type: 'progress'; counts: { done: number; failed: number; in_flight: number; tokens: number } }
  | { type: 'outcome'; outcome: PointOutcome }
  | { type: 'error'; text: string };

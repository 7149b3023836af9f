import type { LoadPlan } from '../../model/documents/serving.js';

/** A load generator that was never the limit. */
export const idleClient: LoadPlan['points'][number]['client'] = {
  threads: 1,
  send_lag_p50_ms: 0,
  send_lag_p99_ms: 0,
  event_loop_delay_p99_ms: 0,
  event_loop_delay_max_ms: 0,
  event_loop_utilization: 0.1,
  process_cores: 0.1,
  bound: false,
  reasons: [],
};

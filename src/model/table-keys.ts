import { big, int, text } from './columns.js';

/** Columns of every table. */
export const runKeys = {
  execution_id: text('one run of the workload; no query sums over executions'),
  capture_id: text("one tool's recording of an execution"),
  host: text('host name, or a substitute for it'),
  pid: big('process id'),
  rank: int('rank in the process group, 0 when there is one process'),
};

/** Columns of events on a thread or device. */
export const eventKeys = {
  ...runKeys,
  tid: big('thread id'),
  device: int('device ordinal; null for host events'),
  context: big('device context'),
};

export const interval = {
  start_ns: big("start, ns since the session's start"),
  dur_ns: big('duration, ns'),
};

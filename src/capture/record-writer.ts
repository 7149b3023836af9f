import { appendRecord, type RecordBody } from '../engines/record-lines.js';
import { monotonicNs, realtimeNs } from '../model/clock.js';

export { recordVariable } from '../model/outer-run.js';

type Untimed<L extends RecordBody = RecordBody> = L extends RecordBody
  ? Omit<L, 't_ns'> & { t_ns?: number }
  : never;

export interface RecordWriter {
  /** Buffers a line in memory; t_ns defaults to now. */
  add(line: Untimed): void;
  /** Appends the buffered lines. Called between timed regions, since writing inside one would be measured. */
  flush(): void;
  /** One of the (monotonic, realtime) pairs that tie this recorder's clock to the wall. */
  clock(): void;
}

/** Writes the recording protocol of docs/reference/recording-protocol.md (INFERSCOPE_RECORD) to `path`. */
export function recordWriter(path: string, executionId: string, rank = 0): RecordWriter {
  let pending: RecordBody[] = [];
  const writer: RecordWriter = {
    add(body) {
      pending.push({ ...body, t_ns: body.t_ns ?? monotonicNs() } as RecordBody);
    },
    flush() {
      appendRecord(path, executionId, pending, rank);
      pending = [];
    },
    clock() {
      writer.add({ type: 'clock', realtime_ns: realtimeNs() });
    },
  };
  return writer;
}

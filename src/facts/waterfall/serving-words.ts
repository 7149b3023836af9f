import type { WaterfallBar } from '../../model/documents/explain.js';
import type { Workload } from '../../model/manifest.js';
import { embeddedServer } from '../../model/server-metrics.js';

/** Source of a server's queue time; `text` is shown to users. */
interface QueueSource {
  code: 'histogram' | 'littles_law';
  text: string;
}

/** Server times of a mean request, ms; null if not reported. */
export interface ServerTimes {
  queueMs: number | null;
  queueFrom: QueueSource | null;
  prefillMs: number | null;
  e2eMs: number | null;
  /** The client's mean of the requests in e2eMs; null if their number is not the server's. */
  clientE2eMs: number | null;
  /** The command that shows where the server's time goes. */
  profile: string;
}

type BarWords = Pick<WaterfallBar, 'label' | 'confidence' | 'confidence_why' | 'better_capture'>;

/** The embedded engine runs on the CPU, where nsys has no kernels to record. */
export const serverProfile = (workload: Pick<Workload, 'engine'> | null): string =>
  workload?.engine.name === embeddedServer
    ? 'inferscope profile --model <the model of the server>'
    : 'inferscope run --evaluator nsys -- <the command of the server>';

const readServerMetrics = 'inferscope bench serve --metrics-url <page of the server>';

/** Text of a request's bars as seen by the client. */
export function servingWords(id: string, { queueMs, queueFrom, profile }: ServerTimes): BarWords {
  switch (id) {
    case 'kernels.prefill':
      return {
        label: 'prefill in the server',
        confidence: 'medium',
        confidence_why: "the server's own measurement, a mean",
        better_capture: profile,
      };
    case 'kernels.decode':
      return {
        label: 'decode in the server (first to last token)',
        confidence: 'medium',
        confidence_why: "exact intervals of the client's clock; include steps of other requests",
        better_capture: profile,
      };
    case 'host.client':
      return {
        label: 'due but not sent: no free client',
        confidence: 'high',
        confidence_why: "exact intervals of the client's clock",
        better_capture: null,
      };
    case 'host.network':
      return {
        label: 'network and HTTP',
        confidence: 'low',
        confidence_why: 'a difference of means, or the fastest answer',
        better_capture: null,
      };
    case 'host.queue':
      return {
        label: "waiting in the server's queue",
        confidence: queueFrom?.code === 'littles_law' ? 'low' : 'medium',
        confidence_why: queueFrom?.text ?? '',
        better_capture: null,
      };
    default:
      return {
        label: 'not explained, before the first token',
        confidence: 'low',
        confidence_why: 'the session does not show its cause',
        better_capture: queueMs === null ? readServerMetrics : profile,
      };
  }
}

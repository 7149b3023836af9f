import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import process from 'node:process';

/** Load of one client thread. */
export interface ThreadHealth {
  seconds: number;
  /** Delay beyond the sampler's period; a stamp can be late by this much. */
  event_loop_delay_p50_ms: number;
  event_loop_delay_p99_ms: number;
  event_loop_delay_max_ms: number;
  /** Share of time in which the thread's event loop was busy. */
  event_loop_utilization: number;
  /** Cores used by the whole process, all threads. */
  process_cores: number;
}

const periodNs = 1e6;

/** Watches this thread until the returned function is called. Uses a native timer every millisecond. */
export function watchThread(): () => ThreadHealth {
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const utilization = performance.eventLoopUtilization();
  const cpu = process.cpuUsage();
  const startMs = performance.now();
  return () => {
    delay.disable();
    const used = process.cpuUsage(cpu);
    const wallMs = Math.max(performance.now() - startMs, 1e-3);
    // The histogram has intervals between ticks, which equal the period if nothing is late.
    const delayMs = (ns: number) => (Number.isFinite(ns) ? Math.max(0, ns - periodNs) / 1e6 : 0);
    return {
      seconds: wallMs / 1000,
      event_loop_delay_p50_ms: delayMs(delay.percentile(50)),
      event_loop_delay_p99_ms: delayMs(delay.percentile(99)),
      event_loop_delay_max_ms: delay.count === 0 ? 0 : delayMs(delay.max),
      event_loop_utilization: performance.eventLoopUtilization(utilization).utilization,
      process_cores: (used.user + used.system) / 1000 / wallMs,
    };
  };
}

import { once } from 'node:events';
import { abortable } from './interrupt.js';
import { recordMachine } from './monitor-recording.js';
import type { MonitorCommandOptions } from './monitor-session.js';

/** `inferscope monitor` runs until --duration or Ctrl-C; both are the normal way to stop it, with exit code 0. */
export async function monitorLive(options: MonitorCommandOptions): Promise<void> {
  await abortable((stopped) =>
    recordMachine(options.name ?? 'monitor', options, true, async ({ untilEnd }) => {
      const { duration } = options;
      const limits = duration === undefined ? [stopped] : [stopped, AbortSignal.timeout(duration)];
      const end = AbortSignal.any(limits);
      if (!end.aborted) await untilEnd(once(end, 'abort'));
      return { title: 'GPUs and host', status: 'complete', program: null, result: {} };
    }),
  );
}

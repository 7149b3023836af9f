import process from 'node:process';
import { leaveAtOnce, stopSignals } from './interrupt.js';
import { startRecording, type Recording } from './monitor-recording.js';
import type { MonitorCommandOptions } from './monitor-session.js';

/** `inferscope monitor`: until --duration or Ctrl-C, the normal way to stop it: exit code 0. */
export async function monitorLive(options: MonitorCommandOptions): Promise<void> {
  const names = stopSignals();
  let stop: (name?: NodeJS.Signals) => void = () => {};
  const ended = new Promise<void>((resolve) => {
    let asked = false;
    stop = (name) => {
      if (asked && name !== undefined) return leaveAtOnce(name);
      asked = true;
      resolve();
    };
  });
  for (const name of names) process.on(name, stop);
  let recording: Recording | null = null;
  let timer: NodeJS.Timeout | null = null;
  try {
    recording = await startRecording(options.name ?? 'monitor', options, true);
    if (options.duration !== undefined) timer = setTimeout(stop, options.duration);
    await recording.untilEnd(ended);
    await recording.conclude({ title: 'GPUs and host', status: 'complete', program: null });
  } catch (error) {
    await recording?.abandon();
    throw error;
  } finally {
    if (timer) clearTimeout(timer);
    for (const name of names) process.off(name, stop);
  }
}

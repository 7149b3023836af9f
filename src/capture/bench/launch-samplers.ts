import process from 'node:process';
import type { EngineLaunch } from '../../model/engine.js';
import type { Gpus } from '../telemetry-gpus.js';
import { startDeviceSampler } from '../run/device-sampler.js';
import { startHostSampler, type HostSampler } from '../telemetry.js';
import type { Issue } from '../../model/document.js';
import type { Row } from '../../model/tables.js';

/** Interval at which an engine is asked whether another of its processes took over, ms. */
const watchMs = 100;

interface Sampled {
  telemetry: Row<'telemetry'>[];
  memory: Row<'memory'>[];
  issues: Issue[];
}

/**
 * Samples host and GPUs during a launch, 20 times per second. If an engine continues in another process after one was
 * killed, that process is watched. For a remote engine only this machine's own load is stored.
 */
export function sampleLaunch(
  launched: Pick<EngineLaunch, 'pid'>,
  gpus: Gpus | null,
  keys: { execution_id: string; host: string },
): { stop(): Sampled } {
  const parts: Sampled[] = [];
  let watched = launched.pid;
  let host = watch();
  const timer = setInterval(() => {
    if (launched.pid === watched) return;
    parts.push(hostPart());
    watched = launched.pid;
    host = watch();
  }, watchMs);
  timer.unref();
  const devices = gpus
    ? startDeviceSampler(gpus, { ...keys, capture_id: `${keys.execution_id}-gpus` })
    : null;

  function watch(): HostSampler {
    const host_keys = { ...keys, capture_id: `${keys.execution_id}-host`, rank: 0 };
    return startHostSampler({ pid: watched ?? process.pid, keys: host_keys });
  }

  function hostPart(): Sampled {
    const { telemetry, memory, issues } = host.stop();
    if (watched !== null) return { telemetry, memory, issues };
    return { telemetry: telemetry.filter(({ scope }) => scope !== 'process'), memory: [], issues };
  }

  return {
    stop() {
      clearInterval(timer);
      parts.push(hostPart());
      if (devices) parts.push(devices.stop());
      return {
        telemetry: parts.flatMap(({ telemetry }) => telemetry),
        memory: parts.flatMap(({ memory }) => memory),
        issues: parts.flatMap(({ issues }) => issues),
      };
    },
  };
}

import process from 'node:process';
import type { LatestDevice } from '../capture/run/device-sampler.js';
import type { HostNow } from '../capture/monitor/watch.js';
import { throttleReasons } from '../model/throttle-reasons.js';
import { print, terminalWidth } from './output.js';
import { terminalBlocks } from '../render/terminal/view.js';
import { plainText } from '../render/value.js';
import { withPlainSpaces } from '../render/terminal/text.js';
import { liveBlocks, liveLine, type LiveGpu, liveSeconds, type LiveState } from '../views/monitor-live.js';

export interface Display {
  /** Shows one second. */
  show(now: { seconds: number; devices: readonly LatestDevice[]; host: HostNow }): void;
  /** Clears the view before the summary. */
  end(): void;
}

const silent: Display = { show: () => {}, end: () => {} };

/** Redraws in place on a terminal; elsewhere prints one line per second. */
export function openDisplay(title: string, quiet: boolean): Display {
  if (quiet) return silent;
  const live = process.stdout.isTTY === true && process.env['TERM'] !== 'dumb';
  const history = new Map<string, (number | null)[]>();
  let drawnLines = 0;

  function remember(key: string, value: number | null): void {
    const values = history.get(key) ?? [];
    values.push(value);
    history.set(key, values.slice(-liveSeconds));
  }
  /** Moves to the start of the last drawing and clears from there. */
  function clear(): void {
    if (drawnLines > 0) process.stdout.write(`\u001b[${drawnLines}A\u001b[J`);
    drawnLines = 0;
  }

  // Restore the cursor however the process exits.
  const showCursor = () => process.stdout.write('\u001b[?25h');
  if (live) process.once('exit', showCursor);

  return {
    show({ seconds, devices, host }) {
      const gpus = devices.map(gpuNow);
      for (const gpu of gpus) {
        remember(`${gpu.scope} utilization`, gpu.utilizationPercent);
        remember(`${gpu.scope} power`, gpu.powerW);
      }
      remember('host cpu', host.cpuPercent);
      const state: LiveState = { title, seconds, gpus, host, history };
      if (!live) {
        print(withPlainSpaces(plainText(liveLine(state))));
        return;
      }
      const rows = process.stdout.rows || 24;
      // One line less than the terminal height: a scrolling view cannot be redrawn in place.
      const lines = terminalBlocks(liveBlocks(state), terminalWidth())
        .split('\n')
        .slice(0, rows - 2);
      clear();
      if (drawnLines === 0) process.stdout.write('\u001b[?25l');
      print(lines.join('\n'));
      drawnLines = lines.length;
    },
    end() {
      if (!live) return;
      clear();
      showCursor();
      process.off('exit', showCursor);
    },
  };
}

function gpuNow({ scope, device, sample, details }: LatestDevice): LiveGpu {
  const bits = sample.throttleBits;
  return {
    scope,
    name: device.name,
    utilizationPercent: sample.utilizationPercent,
    memoryUsedBytes: sample.memoryUsedBytes,
    memoryTotalBytes: device.memoryTotalBytes,
    powerW: sample.powerW ?? sample.powerInstantW,
    powerLimitW: details?.powerLimitW ?? device.powerLimitW,
    smClockMhz: sample.smClockMhz,
    temperatureC: sample.temperatureC,
    limitedBy:
      bits === null
        ? null
        : throttleReasons.filter(({ bit, limits }) => limits && (bits & bit) !== 0).map(({ label }) => label),
    pcieTxMbPerS: details?.pcieTxMbPerS ?? null,
    pcieRxMbPerS: details?.pcieRxMbPerS ?? null,
    processes: sample.computeProcesses ?? details?.processes?.length ?? null,
  };
}

import type { PhaseKind } from '../../../model/documents/trace.js';
import { formatMs } from '../../format.js';
import { barColors, classColors, type Theme } from '../../palette.js';

export const formatNs = (ns: number): string => formatMs(ns / 1e6);

const phaseNames: Partial<Record<PhaseKind, string>> = {
  decode: 'decode step',
  load: 'loading',
  warmup: 'warm-up',
  other: 'step',
  outside: 'outside phases',
};

export function phaseName(kind: PhaseKind | null): string {
  return kind === null ? 'whole capture' : (phaseNames[kind] ?? kind);
}

export function phaseColor(kind: PhaseKind, theme: Theme): string {
  const tone = theme.dark ? 'dark' : 'light';
  if (kind === 'sampling') return classColors.sampling;
  if (kind === 'prefill' || kind === 'mixed') return barColors.roofline[tone];
  return kind === 'decode' ? barColors.serial[tone] : barColors.idle[tone];
}

/** Causes of idle time in the order of the waterfall, in one hue: none of them is a kernel class. */
export const causes: Record<string, { name: string; meaning: string; color: string }> = {
  host: {
    name: 'host',
    meaning: 'the launching thread was busy with something else: Python, the framework, the program',
    color: '#7f2704',
  },
  'host.start_up': {
    name: 'host, starting up',
    meaning:
      'before the first work of the device in this capture: imports, reading weights, building the model',
    color: '#4d1a05',
  },
  'host.shut_down': {
    name: 'host, winding up',
    meaning: 'after the last work of the device in this capture',
    color: '#4d1a05',
  },
  launch_overhead: { name: 'launching', meaning: 'inside the API call that launches', color: '#c2480a' },
  synchronization: {
    name: 'synchronisation',
    meaning: 'the launching thread waited for the device, or in a blocking copy or allocation',
    color: '#ec7f2c',
  },
  launch_latency: {
    name: 'launch latency',
    meaning: 'from the return of the launch to the begin on the device, up to this device’s usual latency',
    color: '#fbb679',
  },
  device_dependency: {
    name: 'device dependency',
    meaning: 'work was queued and the device did not begin it: dependencies between streams or graph nodes',
    color: '#fddcc0',
  },
  unattributed: {
    name: 'not explained',
    meaning: 'no launch is known for what ended the gap',
    color: '#9aa3b2',
  },
};

export const causeName = (id: string): string => causes[id]?.name ?? id.replaceAll('_', ' ');

/** What a device does in time that is not compute, and compute itself. */
export const busyColors = (theme: Theme) => ({
  compute: barColors.roofline[theme.dark ? 'dark' : 'light'],
  communication: classColors.communication,
  copies: classColors.copy,
});

import { basename } from 'node:path';
import { formatFigure, formatNumber, formatPercent, formatQuantity, nbsp } from '../../format.js';
import { DataTable } from '../parts.js';
import type { MonitorSection } from './monitor-parts.js';

const cost = (what: { mean: number; max: number } | null): string =>
  what === null
    ? 'not told'
    : `${formatNumber(what.mean, 2)}${nbsp}µs, at most ${formatQuantity(what.max / 1e3, 'ms', 2)}`;

/** How it was recorded, and what the words mean. */
export const recordingSection: MonitorSection = {
  id: 'recording',
  title: 'Recording',
  render: ({ data: { plan, duration_s, sample_hz, thresholds } }) => {
    const facts: [string, string][] = [
      ['read by', plan.tool ?? 'nothing'],
      ...(plan.driver === null ? [] : [['driver', plan.driver] as [string, string]]),
      ...(plan.files.length === 0
        ? []
        : [['files', plan.files.map((file) => basename(file)).join(', ')] as [string, string]]),
      ['time', formatFigure(duration_s)],
      [
        'samples a second',
        `${formatFigure(sample_hz)}${plan.hz === null ? '' : `, ${formatNumber(plan.hz)} asked for`}`,
      ],
      ['cost of a sample of the GPUs', cost(plan.sample_cost_us.gpus)],
      ['cost of a sample of the host', cost(plan.sample_cost_us.host)],
    ];
    const definitions: [string, string][] = [
      [
        'idle',
        `Utilisation under ${thresholds.idle_percent}${nbsp}% for at least ${formatQuantity(thresholds.idle_ms, 'ms')}. NVIDIA's utilisation is the share of the last 1/6 to 1 s in which any kernel ran: shorter pauses are not seen in it.`,
      ],
      [
        'throttled',
        'The driver says that something keeps the clocks below what the GPU would run at: power cap, heat, clocks set by hand. Idling is no throttling.',
      ],
      [
        'usual clock',
        `Median SM clock while at least ${thresholds.busy_percent}${nbsp}% busy and not throttled; a drop is less than ${formatPercent(thresholds.clock_drop)} of it.`,
      ],
      ['energy', 'Growth of the energy counter where there is one, else the integral of the power.'],
    ];
    return (
      <>
        <DataTable
          caption="How it was recorded"
          class="whole"
          columns={[{ head: '' }, { head: '', wraps: true }]}
          rows={facts}
        />
        <DataTable
          caption="What the words mean"
          class="whole"
          columns={[{ head: '' }, { head: '', wraps: true }]}
          rows={definitions}
        />
      </>
    );
  },
};

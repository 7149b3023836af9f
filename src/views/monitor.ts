import type { Document } from '../model/document.js';
import type { MonitorDevice, MonitorMetric, MonitorResult } from '../model/documents/monitor.js';
import type { Figure } from '../model/figure.js';
import { labeledMetrics, metricLabel, scopeLabel } from '../vocabulary/sampled-metrics.js';
import type { Block, Section, Text, View } from './block.js';
import { deviceSeries, deviceShades, hostSeries } from './monitor-series.js';
import { samplesBlock } from './samples.js';
import { throttleWords } from '../model/throttle-reasons.js';
import { formatSetting, plural } from '../vocabulary/format.js';

/** A recording of GPUs and host: when each GPU was idle, throttled or near its limits, and what it used. */
export function monitorView(document: Document<MonitorResult>): View {
  const { data, issues } = document;
  const { session, host } = data;
  return {
    command: 'monitor',
    title: session.title,
    document,
    session,
    lead: [
      { type: 'text', text: traitText(data) },
      { type: 'notes', items: data.headlines },
      { type: 'facts', items: runFacts(data) },
      ...(data.plan.program === null ? [] : [programBlock(data.plan.program)]),
      // The facts say why no GPU was sampled.
      {
        type: 'issues',
        issues: issues.filter(({ code }) => code !== 'no_gpu' || data.plan.no_gpus === null),
      },
    ],
    sections: [
      ...data.devices.map((device) => deviceSection(device, data)),
      ...(host.metrics.length > 0 ? [hostSection(data)] : []),
      recordingSection(data),
    ],
  };
}

const ms = (n: number): Text => ({ n, unit: 'ms' });
const fromNs = (ns: number): Text => ms(ns / 1e6);
const join = (texts: readonly Text[], between: string): Text =>
  texts.flatMap((text, index) => [
    ...(index === 0 ? [] : [between]),
    ...(Array.isArray(text) ? text : [text]),
  ]) as Text;

function traitText({ session, plan, duration_s, sample_hz, devices }: MonitorResult): Text {
  return join(
    [
      devices.length === 0 ? 'no GPU' : plural(devices.length, 'GPU'),
      ...(plan.tool === null ? [] : [plan.tool]),
      ...(plan.driver === null ? [] : [`driver ${plan.driver}`]),
      ...(duration_s.value === null ? [] : [{ figure: duration_s }]),
      ...(sample_hz.value === null ? [] : [{ figure: sample_hz }]),
      ...(session.status === 'complete' ? [] : [session.status]),
    ],
    ' · ',
  );
}

function runFacts({ plan: { program, no_gpus } }: MonitorResult): { name: string; text: Text }[] {
  const items: { name: string; text: Text }[] = [];
  if (program) {
    const how =
      program.signal !== null
        ? `killed (${program.signal})`
        : program.exit_code === null
          ? null
          : `exit code ${program.exit_code}`;
    items.push({
      name: 'Program',
      text:
        how === null
          ? 'not started'
          : [`${how}, after `, { n: (program.end_ns - program.start_ns) / 1e6, unit: 'ms' }],
    });
  }
  if (no_gpus) items.push({ name: 'No GPU', text: no_gpus.text });
  return items;
}

/** Only in details, since the session's title starts with the program. */
const programBlock = ({ command }: { command: readonly string[] }): Block => ({
  type: 'facts',
  level: 2,
  items: [{ name: 'Command', text: { code: command.join(' ') } }],
});

/** Maximum rows in a summary of one GPU; with several GPUs the key sentences describe each. */
const briefRows = { device: 5, host: 2 };

const deviceSection = (device: MonitorDevice, data: MonitorResult): Section => ({
  id: device.scope.replace('.', '-'),
  title: [scopeLabel(device.scope), ...(device.name === null ? [] : [device.name])].join(' · '),
  level: data.devices.length > 1 ? 2 : 1,
  blocks: [
    samplesBlock(
      deviceSeries(data, device.scope),
      `Utilization, memory, power, clocks and temperature of ${scopeLabel(device.scope)} over time`,
      deviceShades(device),
    ),
    metricTable(device.metrics, data.session.id === null ? null : briefRows.device),
    { type: 'facts', level: 2, items: deviceFacts(device, data.thresholds) },
    ...periodFolds(device),
  ],
});

/** Statistics over the recording, one row per metric. @param brief maximum rows in a summary; null for what was not saved: it is shown only there */
function metricTable(metrics: readonly (MonitorMetric & { scope?: string })[], brief: number | null): Block {
  const value = (n: number, { metric, unit }: MonitorMetric): Text =>
    unit === '' || metric === 'cores_busy' ? { n, unit: '', digits: 2 } : { n, unit, digits: 2 };
  return {
    type: 'table',
    title: 'Over the recording; the mean is over time, percentiles are of samples',
    ...(brief === null ? {} : { brief }),
    columns: [
      { id: 'metric', head: '', wraps: true },
      { id: 'mean', head: 'mean', numeric: true },
      { id: 'min', head: 'min', numeric: true, drop: 2 },
      { id: 'p5', head: 'p5', numeric: true, drop: 0 },
      { id: 'median', head: 'median', numeric: true },
      { id: 'p95', head: 'p95', numeric: true, drop: 3 },
      { id: 'max', head: 'max', numeric: true },
      { id: 'samples', head: 'samples', numeric: true, drop: 1 },
    ],
    rows: labeledMetrics(metrics).map((metric) => ({
      cells: [
        metric.scope === undefined || metric.scope === 'host'
          ? metricLabel(metric.metric)
          : `${scopeLabel(metric.scope)}: ${metricLabel(metric.metric)}`,
        ...[metric.mean, metric.min, metric.p5, metric.median, metric.p95, metric.max].map((n) =>
          value(n, metric),
        ),
        { count: metric.n },
      ],
    })),
  };
}

const share = (figure: Figure): Text => ({ figure });

/** Facts of a device, one per line: idle, throttled, energy, memory, processes. */
function deviceFacts(
  device: MonitorDevice,
  thresholds: MonitorResult['thresholds'],
): { name: string; text: Text }[] {
  const { power, memory, clock, processes } = device;
  return [
    { name: 'idle', text: idleText(device, thresholds) },
    { name: 'throttled', text: throttleText(device) },
    ...(clock.dropped_share.value !== null && clock.dropped_share.value > 0
      ? [
          {
            name: 'clock drops',
            text: [
              'SM clock below ',
              { n: thresholds.clock_drop, unit: 'ratio' },
              device.throttling.share.value === null ? ' of the usual ' : ' of the unthrottled ',
              { figure: clock.usual_mhz },
              ' for ',
              share(clock.dropped_share),
              ' of the busy time',
            ] as Text,
          },
        ]
      : []),
    ...(power.energy_j.value === null
      ? []
      : [
          {
            name: 'energy',
            text: [{ figure: power.energy_j }, ` (${power.energy_j.source})`] as Text,
          },
          ...(power.limit_w.value === null
            ? []
            : [
                {
                  name: 'power limit',
                  text: [
                    { figure: power.limit_w },
                    '; within 5 % of it for ',
                    { figure: power.near_limit_share },
                    ' of the time',
                  ] as Text,
                },
              ]),
        ]),
    ...(memory.peak_bytes.value === null || memory.growth_bytes.value === null
      ? []
      : [
          {
            name: 'memory',
            text: [
              'peak ',
              { figure: memory.peak_bytes },
              ...(memory.total_bytes.value === null ? [] : [' of ', { figure: memory.total_bytes }]),
              ', last − first ',
              { figure: memory.growth_bytes },
            ] as Text,
          },
        ]),
    ...processes.slice(0, 8).map(({ pid, name, here, peak_bytes }) => ({
      name: 'process',
      text: [
        `${pid} ${here === true ? (name ?? 'unnamed') : 'not a process of this machine or container'}, at most `,
        { n: peak_bytes, unit: 'B' },
      ] as Text,
    })),
  ];
}

function idleText(
  { idle }: MonitorDevice,
  { idle_percent: percent, idle_ms }: MonitorResult['thresholds'],
): Text {
  if (idle.share.value === null) return idle.share.reason.text;
  const rule: Text = [`under ${formatSetting(percent, '%')} for at least `, { n: idle_ms, unit: 'ms' }];
  if (idle.count === 0) return ['never ', ...rule];
  return [
    { figure: idle.share },
    ` of the time, ${plural(idle.count, 'period')} (`,
    ...rule,
    '), longest ',
    { n: idle.longest_ms ?? 0, unit: 'ms' },
  ];
}

function throttleText({ throttling }: MonitorDevice): Text {
  if (throttling.share.value === null) return throttling.share.reason.text;
  if (throttling.count === 0) return 'never';
  return join(
    [
      { figure: throttling.share },
      ` of the time in ${plural(throttling.count, 'period')}: `,
      join(
        throttling.reasons.map(({ label, share: n }): Text => [`${label} `, { n, unit: 'ratio' }]),
        ', ',
      ),
      longestThrottle(throttling.periods),
    ],
    '',
  );
}

function longestThrottle(all: MonitorDevice['throttling']['periods']): Text {
  const [longest] = all.toSorted((a, b) => b.dur_ns - a.dur_ns);
  if (!longest) return [];
  return join(
    [
      '; longest ',
      fromNs(longest.dur_ns),
      ' (from ',
      fromNs(longest.start_ns),
      `, ${longest.reasons.map(throttleWords).join(', ')}`,
      longest.clock_drop === null ? [] : [', SM clock ', { n: longest.clock_drop, unit: 'ratio' }, ' lower'],
      ')',
    ],
    '',
  );
}

function periodFolds({ idle, throttling }: MonitorDevice): Block[] {
  const title = (what: string, listed: number, count: number): string =>
    listed < count ? `${what}: ${listed} longest of ${count}` : what;
  const time = [
    { id: 'from_ms', head: 'start', numeric: true },
    { id: 'duration_ms', head: 'duration', numeric: true },
  ];
  const fold = (
    what: string,
    listed: number,
    count: number,
    table: Pick<Block & { type: 'table' }, 'columns' | 'rows'>,
  ): Block[] =>
    listed === 0
      ? []
      : [
          {
            type: 'fold',
            level: 3,
            title: title(what, listed, count),
            blocks: [{ type: 'table', title: 'Since the recording started', ...table }],
          },
        ];
  return [
    ...fold('Idle periods', idle.periods.length, idle.count, {
      columns: time,
      rows: idle.periods.map(({ start_ns, dur_ns }) => ({ cells: [fromNs(start_ns), fromNs(dur_ns)] })),
    }),
    ...fold('Throttled periods', throttling.periods.length, throttling.count, {
      columns: [
        ...time,
        { id: 'reasons', head: 'reasons', wraps: true },
        { id: 'sm_clock_mhz', head: 'SM clock', numeric: true },
        { id: 'clock_drop', head: 'clock drop', numeric: true },
      ],
      rows: throttling.periods.map(({ start_ns, dur_ns, reasons, clock_mhz, clock_drop }) => ({
        cells: [
          fromNs(start_ns),
          fromNs(dur_ns),
          reasons.map(throttleWords).join(', '),
          clock_mhz === null ? { missing: 'the clock was not sampled' } : { n: clock_mhz, unit: 'MHz' },
          clock_drop === null ? { missing: 'usual clock unknown' } : { n: clock_drop, unit: 'ratio' },
        ],
      })),
    }),
  ];
}

const hostSection = (data: MonitorResult): Section => ({
  id: 'host',
  title: 'Host',
  blocks: [
    ...(hostSeries(data).length > 0
      ? [samplesBlock(hostSeries(data), 'Processors and memory of the host over time')]
      : []),
    metricTable(data.host.metrics, data.session.id === null ? null : briefRows.host),
  ],
});

/** How it was recorded, and definitions. */
function recordingSection({ plan, duration_s, sample_hz, thresholds }: MonitorResult): Section {
  // Only inferscope's own sampler measures its cost.
  const costs = (['gpus', 'host'] as const).flatMap((part) => {
    const cost = plan.sample_cost_us[part];
    return cost === null
      ? []
      : [
          {
            name: `cost per ${part === 'gpus' ? 'GPU' : 'host'} sample`,
            text: [{ n: cost.mean * 1e3, unit: 'ns' }, ', at most ', { n: cost.max * 1e3, unit: 'ns' }],
          },
        ];
  });
  return {
    id: 'recording',
    title: 'Recording',
    level: 3,
    blocks: [
      {
        type: 'facts',
        items: [
          { name: 'source', text: plan.tool ?? 'nothing' },
          ...(plan.driver === null ? [] : [{ name: 'driver', text: plan.driver }]),
          ...(plan.files.length === 0
            ? []
            : [{ name: 'files', text: plan.files.map((file) => file.split('/').at(-1)!).join(', ') }]),
          { name: 'time', text: { figure: duration_s } },
          {
            name: 'sample rate',
            text: [
              { figure: sample_hz },
              ...(plan.hz === null ? [] : [`, ${formatSetting(plan.hz, 'Hz')} requested`]),
            ],
          },
          ...costs,
        ],
      },
      {
        type: 'facts',
        items: [
          {
            name: 'idle',
            text: [
              `Utilization under ${formatSetting(thresholds.idle_percent, '%')} for at least `,
              { n: thresholds.idle_ms, unit: 'ms' },
              ". NVIDIA's utilization is the share of the last 1/6 to 1 s in which any kernel ran: shorter pauses are not seen in it.",
            ],
          },
          {
            name: 'throttled',
            text: 'The driver reports a limit on the clocks: power cap, temperature, or clocks set manually. An idle GPU is not throttled.',
          },
          {
            name: 'usual clock',
            text: [
              `Median SM clock while at least ${formatSetting(thresholds.busy_percent, '%')} busy and not throttled, else its maximum; a drop is below `,
              { n: thresholds.clock_drop, unit: 'ratio' },
              ' of it.',
            ],
          },
          {
            name: 'energy',
            text: 'Increase of the energy counter if available, else the integral of power.',
          },
        ],
      },
    ],
  };
}

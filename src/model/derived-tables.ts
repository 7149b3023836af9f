import { big, type Column, flag, int, num, type Table, text } from './columns.js';
import { type TableName, tables } from './tables.js';

/**
 * Tables that analyses derive from a session's recorded tables: those of a timeline are for one rank on one device of one capture, those of
 * collectives for all ranks. Users read them with `inferscope sql`, as do the queries behind bars and findings. Their rows are defined
 * here; facts/derived computes them.
 */

const phase = {
  phase: text('load, warmup, prefill, decode, mixed, training, sampling, other, or outside of all'),
  phase_id: big('stage_id of that stage; null outside'),
  step_id: big('the stage, or the prefill or decode step around it: sampling in a step belongs to the step'),
};
const placed = {
  ...phase,
  step_kind: text("kind of the step's window; null outside of steps, outside in a capture that marks none"),
};

const startAndEnd = {
  start_ns: big("start, ns since the session's start"),
  end_ns: big('end, ns'),
};

const gapParts = {
  synchronization: num('the host waited for the device, ns'),
  host: num('before the launching call, its thread in no synchronizing call, ns'),
  launch_overhead: num('inside the launching call, ns'),
  launch_latency: num('from the end of the call to the start of the activity, ns'),
  device_dependency: num('launched in time, waiting for other work of the device, ns'),
  unattributed: num('no recorded launch explains it, ns'),
};

const edges = {
  start_up: num("before the capture's first activity, ns"),
  shut_down: num('after its last activity, ns'),
};

const windowColumns = {
  kind: phase.phase,
  stage_id: big('stage_id of the stage; 0 for the whole of a capture that marks none'),
  raw_name: text('name of the range as recorded'),
  iteration: int('which run of the workload'),
  step_index: int('which step of its kind'),
  ...startAndEnd,
};
const window = big('stage_id of the window; negative between two steps of a request');
const rangeId = big('stage_id of the range');
const ns = num('exclusive time, ns: each instant of the device counts once');
const count = num('how many started in the window');
const className = text('class, as in kernels');
const earlier = flag("launched before the range started: another stage's work");
const copyKind = text('htod_pageable, dtoh_pinned, dtod, memset, …: direction, and the kind of host memory');
const group = text('kind of stage, or the name of a range of the program');

const ofRank = (table: TableName, source: string): Table => ({
  doc: `\`${table}\` of ${source}.`,
  columns: tables[table].columns,
});
const withPhase = (table: TableName, source: string): Table => ({
  doc: `\`${table}\` of ${source}, each with its stage and step: what was launched between two decode steps belongs to the one before.`,
  columns: { ...tables[table].columns, ...placed },
});

const rank = 'the rank';
const device = 'the rank on the device';

const tableOf = {
  stage_places: {
    doc: 'The stage and step in which each row of stages counts; -1 means no stage.',
    columns: { stage_id: big('stage'), ...phase },
  },
  stages_in_phases: {
    doc: 'stage_places without rows outside of all marked stages.',
    columns: { stage_id: big('stage'), kind: phase.phase, phase_id: phase.phase_id, step_id: phase.step_id },
  },
  rank_kernels: ofRank('kernels', device),
  rank_copies: ofRank('copies', device),
  rank_gaps: ofRank('gaps', device),
  rank_api: ofRank('api_calls', rank),
  rank_ops: ofRank('ops', rank),
  phase_kernels: withPhase('kernels', device),
  phase_copies: withPhase('copies', device),
  phase_gaps: withPhase('gaps', device),
  phase_api: withPhase('api_calls', rank),
  phase_ops: withPhase('ops', rank),
  phase_stages: {
    doc: '`stages` of the rank, each with the stage in which it counts.',
    columns: { ...tables.stages.columns, phase: phase.phase, step_id: phase.step_id },
  },
  instances: {
    doc: 'One row per instance of a stage, with its ends by the host and by the device.',
    columns: {
      stage_id: big('stage_id of the stage'),
      kind: phase.phase,
      raw_name: text('name of the range as recorded'),
      pid: big('process id'),
      tid: big('thread id'),
      iteration: int('which run of the workload'),
      step_index: int('which step of its kind'),
      ...startAndEnd,
      device_start_ns: big('start of the first activity that it launched; null where it launched none'),
      device_end_ns: big('end of the last activity that it launched'),
      host_end_ns: big('end by the host: of a decode step, the start of the next one'),
      device_until_ns: big('end by the device: of a decode step, the first activity of the next one'),
      transfers_from_ns: big('start of its first send or receive between steps; null without'),
      transfers_end_ns: big('end of the last one'),
    },
  },
  windows: {
    doc: 'The measured time of every instance of a stage, by one clock for each kind (docs/concepts/stages-and-clocks.md).',
    columns: windowColumns,
  },
  request_parts: {
    doc: 'Steps of each request, and what lies between two of them; empty under continuous batching.',
    columns: { request_id: big('stage_id of its first prefill'), stage_id: window, ...startAndEnd },
  },
  step_windows: {
    doc: 'Windows of steps, which do not overlap, and what lies between the steps of a request.',
    columns: { kind: text('as in windows, or between'), stage_id: window, ...startAndEnd },
  },
  inner_windows: {
    doc: 'Ranges inside and around steps that have a waterfall: sampling, and those that the program names.',
    columns: {
      grp: group,
      stage_id: rangeId,
      label: text('name of this instance'),
      ...startAndEnd,
      host_ns: big("start by the host's clock, if the window uses that clock"),
    },
  },
  spans: {
    doc: 'Instances of everything that has a waterfall.',
    columns: {
      grp: group,
      instance: big('stage_id, or the request'),
      label: text('name of this instance'),
      ...startAndEnd,
    },
  },
  members: {
    doc: 'Which windows an instance of `spans` is made of.',
    columns: { grp: group, instance: big('as in spans'), stage_id: big('window') },
  },
  call_names: { doc: 'Names of the API calls of the rank.', columns: { name: text('API name') } },
  kernel_cells: {
    doc: 'Kernels grouped by these columns: some hundred rows for millions of kernels.',
    columns: {
      phase: phase.phase,
      step_kind: placed.step_kind,
      ...pick('kernels', [
        'name',
        'short_name',
        'class',
        'tile',
        'dtype',
        'context',
        'stream',
        'attributed_by',
      ]),
      in_graph: flag('node of a CUDA graph'),
      orphan: flag('its launching call was not recorded'),
      kernels: big('launches'),
      dur_ns: big('sum of durations, ns'),
      exclusive_ns: big('sum of exclusive times, ns; null where no kernel has one'),
      ...startAndEnd,
      short: big('kernels shorter than 10 µs'),
      short_ns: big('their time, ns'),
    },
  },
  window_kernels: {
    doc: 'Exclusive time of kernels in each window of `step_windows`, by class.',
    columns: { stage_id: window, class: className, ns, n: count },
  },
  window_kernel_names: {
    doc: 'The same by class and kernel.',
    columns: { stage_id: window, class: className, kernel: text('short name'), ns, n: count },
  },
  window_copies: {
    doc: 'Exclusive time of copies in each window of `step_windows`.',
    columns: { stage_id: window, kind: copyKind, ns, n: count },
  },
  gap_span: {
    doc: 'One row: from the first gap to the last one.',
    columns: { start_ns: startAndEnd.start_ns, dur_ns: big('duration, ns') },
  },
  step_gaps: {
    doc: 'Gaps summed by the window that holds them; one row for each gap that lies in none.',
    columns: {
      key: big("the window, or the gap's start + 2^60"),
      ...Object.fromEntries(Object.entries(gapParts).map(([name, { doc }]) => [name, big(doc)])),
    },
  },
  window_communication: {
    doc: 'Exclusive time of communication in each window of `windows`.',
    columns: { stage_id: window, ns },
  },
  window_exposed_copies: {
    doc: 'Exclusive time of copies in each window of `windows`.',
    columns: { stage_id: window, ns },
  },
  window_split: {
    doc: 'What the device did in each window of `windows`, and why it was idle: wall time = busy + idle.',
    columns: {
      ...windowColumns,
      wall_ns: big('wall time, ns'),
      ...edges,
      ...gapParts,
      idle: num('sum of these parts, ns'),
      comm: num('exclusive time of communication, ns'),
      copy: num('exclusive time of copies, ns'),
      kernels: big('kernels that the step launched'),
      launches: big('their launching calls; the nodes of a CUDA graph share one'),
      kernel_time: num('sum of their durations, ns'),
      copies: big('copies that the step launched'),
    },
  },
  window_idle: {
    doc: "Why the device was idle in each window of `step_windows`: gaps by cause, clipped at the window's edges.",
    columns: { kind: text('as in step_windows'), stage_id: window, ...gapParts, ...edges },
  },
  inner_kernels: {
    doc: 'Exclusive time of kernels in each range of `inner_windows`, by class.',
    columns: { stage_id: rangeId, class: className, earlier, ns, n: count },
  },
  inner_kernel_names: {
    doc: 'The same by class and kernel.',
    columns: { stage_id: rangeId, class: className, kernel: text('short name'), earlier, ns, n: count },
  },
  inner_copies: {
    doc: 'Exclusive time of copies in each range of `inner_windows`.',
    columns: { stage_id: rangeId, kind: copyKind, earlier, ns, n: count },
  },
  inner_gaps: {
    doc: 'Gaps by cause in each range of `inner_windows`.',
    columns: { stage_id: rangeId, ...interleaved() },
  },
  inner_idle: {
    doc: 'Why the device did nothing for each range of `inner_windows`: gaps, and work of earlier stages as device_dependency.',
    columns: { stage_id: rangeId, ...gapParts, ...gapCounts(), ...edges },
  },
  host_gaps: {
    doc: "The host's part of gaps, by step and by the outermost operator that launched what ended the gap.",
    columns: {
      step_id: big('step; 0 for the whole of a capture that marks none'),
      root_name: text('outermost operator; null for none'),
      host_ns: num('host time, ns'),
      inside_ns: num('the part of it inside that operator, ns'),
      n: big('gaps'),
    },
  },
  loading_calls: {
    doc: 'Host time in which loading and warm-up loaded code onto the device.',
    columns: { stage_id: window, call: text('API name'), ns: num('ns') },
  },
  collective_rows: {
    doc: '`collectives` without duplicates of repeated imports. Ranks may send different amounts in each all-to-all, so its size is the median.',
    columns: {
      ...tables.collectives.columns,
      step_id: big(
        'stage that launched it; of a send between two steps the last step, of a receive the next one',
      ),
      between_steps: flag('a send or receive that no step launched'),
      sequence_of: text("what the sequence numbers count: the operation, or 'Send and Recv'"),
      expected_ranks: big(
        'number of ranks that count as all: those with a timeline; in NCCL Inspector logs, those of the communicator',
      ),
    },
  },
  collective_calls: {
    doc: 'Calls that every rank of the communicator recorded by the GPU clock, and that no rank leaves before the last one has arrived: the rank with the shortest time arrived last.',
    columns: {
      ...pick('collectives', [
        'execution_id',
        'communicator',
        'operation',
        'sequence',
        'bytes',
        'ranks',
        'nodes',
      ]),
      recorded_ranks: big('ranks that recorded it'),
      time_ns: big('sum of the durations, ns'),
      shortest_ns: big('shortest duration of a rank, ns: the exchange'),
      second_ns: big('second shortest, ns'),
      longest_ns: big('longest, ns'),
      last_rank: int('rank with the shortest; null where two are equal'),
      last_host: text('host of that rank'),
      longest_rank: int('rank with the longest; null where two are equal'),
      longest_host: text('host of that rank'),
    },
  },
} satisfies Record<string, Table>;

export type DerivedTable = keyof typeof tableOf;
/** Tables of one rank of a timeline; the others are of all ranks. */
export type TimelineTable = Exclude<DerivedTable, `collective_${string}`>;
export const isTimelineTable = (name: DerivedTable): name is TimelineTable => !name.startsWith('collective_');
export const derivedTables: Readonly<Record<DerivedTable, Table>> = tableOf;

function pick(table: TableName, names: readonly string[]): Record<string, Column> {
  const columns = tables[table].columns as Record<string, Column>;
  return Object.fromEntries(names.map((name) => [name, columns[name]!]));
}

function gapCounts(): Record<string, Column> {
  return Object.fromEntries(Object.keys(gapParts).map((part) => [`n_${part}`, num(`gaps with ${part}`)]));
}

function interleaved(): Record<string, Column> {
  const counts = gapCounts();
  return Object.fromEntries(
    Object.entries(gapParts).flatMap(([part, column]) => [
      [part, column],
      [`n_${part}`, counts[`n_${part}`]!],
    ]),
  );
}

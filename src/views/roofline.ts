import type { Document } from '../model/document.js';
import type { MachineRoofline, RooflineData } from '../model/documents/roofline.js';
import type { Block, Section, Text, View } from './block.js';
import { gpuSections } from './roofline-gpu.js';
import { plural, formatDuration } from '../vocabulary/format.js';

/** Measured rooflines of the GPUs, of the CPU, or both. */
export function rooflineView(document: Document<RooflineData>): View {
  const { roofline: cpu, cached, age_s, gpu, gpu_cached, gpu_age_s } = document.data;
  const when = (
    measured: { measured_at: string; seconds: number },
    isCached: boolean,
    ageS: number | null,
  ): Text => [
    `${measured.measured_at.slice(0, 16).replace('T', ' ')} UTC${isCached && ageS !== null ? ` (${age(ageS)})` : ''}, in `,
    { n: measured.seconds * 1e3, unit: 'ms' },
  ];
  return {
    command: 'roofline',
    title: title(document.data),
    document,
    session: { id: null, started_at: gpu?.measured_at ?? cpu?.measured_at ?? '' },
    lead: [
      {
        type: 'facts',
        items: [
          ...(gpu
            ? [
                {
                  name: 'GPUs measured',
                  text: [
                    ...[when(gpu, gpu_cached, gpu_age_s)].flat(),
                    '; rates are of the median run',
                  ] as Text,
                },
              ]
            : []),
          ...(gpu?.driver ? [{ name: 'driver', text: gpu.driver }] : []),
          ...(cpu ? [{ name: 'CPU measured', text: when(cpu, cached, age_s) }] : []),
        ],
      },
      { type: 'issues', issues: document.issues },
    ],
    sections: [...(gpu ? gpuSections(gpu) : []), ...(cpu ? [cpuSection(cpu)] : [])],
  };
}

function title({ gpu, roofline: cpu }: RooflineData): string {
  if (gpu) {
    const names = [...new Set(gpu.gpus.map(({ name }) => name))].join(', ');
    return `${names}${gpu.gpus.length > 1 ? ` × ${gpu.gpus.length}` : ''} · ${gpu.framework}`;
  }
  if (!cpu) return 'nothing measured';
  return `${cpu.cpu_model} · ${cpu.engine} · ${plural(cpu.threads, 'thread')}`;
}

const age = (seconds: number): string => (seconds < 60 ? 'just now' : `${formatDuration(seconds)} ago`);

const cpuSection = (cpu: MachineRoofline): Section => ({
  id: 'cpu',
  title: 'CPU',
  blocks: [...cpuTables(cpu), cpuFacts(cpu)],
});

/** Peaks and bandwidths of a CPU. */
export const cpuTables = (cpu: MachineRoofline): Block[] => [
  {
    type: 'table',
    title: 'Compute peaks',
    columns: [
      { id: 'dtype', head: 'compute peak' },
      { id: 'flops_per_s', head: 'FLOP/s', numeric: true },
      { id: 'sd_share', head: 'sd', numeric: true },
      { id: 'runs', head: 'runs', numeric: true, drop: 0 },
      { id: 'reached_by', head: 'reached by', wraps: true },
    ],
    rows: cpu.compute.map((peak) => ({
      cells: [
        peak.dtype,
        { n: peak.flops_per_s, unit: 'FLOP/s' },
        { n: peak.sd_share, unit: 'ratio' },
        { count: peak.runs },
        peak.reached_by,
      ],
    })),
  },
  {
    type: 'table',
    title: 'Read bandwidth by working set',
    columns: [
      { id: 'working_set_bytes', head: 'working set', numeric: true },
      { id: 'level', head: 'level' },
      { id: 'bytes_per_s', head: 'read', numeric: true },
      { id: 'sd_share', head: 'sd', numeric: true },
      { id: 'runs', head: 'runs', numeric: true, drop: 0 },
      { id: 'reached_by', head: 'reached by', wraps: true },
    ],
    rows: cpu.bandwidth.map((point) => ({
      cells: [
        { n: point.working_set_bytes, unit: 'B' },
        point.level,
        { n: point.bytes_per_s, unit: 'B/s' },
        { n: point.sd_share, unit: 'ratio' },
        { count: point.runs },
        point.reached_by,
      ],
    })),
  },
  {
    type: 'table',
    title: 'Weights read by GEMMs',
    columns: [
      { id: 'weights', head: 'weights' },
      { id: 'batch_size', head: 'batch', numeric: true },
      { id: 'bytes_per_s', head: 'read', numeric: true },
      { id: 'weights_per_s', head: 'weights/s', numeric: true },
    ],
    rows: cpu.weight_streams.map(({ format, batch_size, bytes_per_s, weights_per_s }) => ({
      cells: [
        format,
        { count: batch_size },
        { n: bytes_per_s, unit: 'B/s' },
        [{ n: weights_per_s / 1e9, unit: '' }, ' billion'],
      ],
    })),
  },
];

function cpuFacts(cpu: MachineRoofline): Block {
  const { ridge_flop_per_byte: ridge, bandwidth, last_level_cache_bytes: cache } = cpu;
  return {
    type: 'facts',
    items: [
      {
        name: 'ridge point',
        text: [
          { n: ridge, unit: 'FLOP/byte' },
          ` (float32 peak over ${bandwidth.at(-1)?.level ?? 'memory'} read)`,
        ],
      },
      {
        name: 'last-level cache',
        text: cache === null ? { missing: 'its size is not known' } : { n: cache, unit: 'B' },
      },
    ],
  };
}

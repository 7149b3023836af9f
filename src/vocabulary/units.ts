/** Units of quantities, and the prefixes with which a value is displayed. */
export interface Rung {
  /** Smallest magnitude, in the source unit, that uses this unit. */
  from: number;
  factor: number;
  unit: string;
}

const decimal = (unit: string): Rung[] =>
  ['', 'k', 'M', 'G', 'T', 'P'].map((prefix, index) => ({
    from: index === 0 ? 0 : 1000 ** index,
    factor: 1000 ** index,
    unit: `${prefix}${unit}`,
  }));

/** Units for times given in units of `ns` nanoseconds, so that a time has the same text in any unit. */
const time = (ns: number): Rung[] => [
  { from: 0, factor: 1 / ns, unit: 'ns' },
  { from: 1e3 / ns, factor: 1e3 / ns, unit: 'µs' },
  { from: 1e5 / ns, factor: 1e6 / ns, unit: 'ms' },
  { from: 1e9 / ns, factor: 1e9 / ns, unit: 's' },
];

/** Display units by source unit, ascending. */
export const ladders: Record<string, Rung[]> = {
  ns: time(1),
  us: time(1e3),
  ms: time(1e6),
  s: time(1e9),
  B: ['B', 'KiB', 'MiB', 'GiB', 'TiB'].map((unit, index) => ({
    from: index === 0 ? 0 : 1024 ** index,
    factor: 1024 ** index,
    unit,
  })),
  GB: ['B', 'kB', 'MB', 'GB', 'TB'].map((unit, index) => ({
    from: index === 0 ? 0 : 1000 ** (index - 3),
    factor: 1000 ** (index - 3),
    unit,
  })),
  'B/s': decimal('B/s'),
  parameters: [
    { from: 0, factor: 1, unit: 'parameters' },
    { from: 1e6, factor: 1e6, unit: 'M parameters' },
    { from: 1e9, factor: 1e9, unit: 'B parameters' },
  ],
  FLOP: decimal('FLOP'),
  'FLOP/s': decimal('FLOP/s'),
};

/** Units that are words, of a count of one. */
export const singularUnits: Record<string, string> = {
  bytes: 'byte',
  cores: 'core',
  files: 'file',
  launches: 'launch',
  metrics: 'metric',
  parameters: 'parameter',
  processes: 'process',
  requests: 'request',
  samples: 'sample',
};

/** Other names of a unit in documents and files, with the name used here. */
export const unitNames: Record<string, string> = {
  bytes: 'B',
  byte: 'B',
  'bytes/s': 'B/s',
  FLOPs: 'FLOP',
  FLOPS: 'FLOP/s',
  'FLOP/B': 'FLOP/byte',
  'tokens/s': 'tok/s',
  // Load tests count requests per second.
  '1/s': 'req/s',
  percent: '%',
  '1': 'ratio',
  share: 'ratio',
  fraction: 'ratio',
};

/** What a number measures. unknown: it verifies no number with a unit. */
export type Dimension =
  | 'time'
  | 'ratio'
  | 'bytes'
  | 'bytes_rate'
  | 'flop'
  | 'flop_rate'
  | 'rate'
  | 'frequency'
  | 'power'
  | 'energy'
  | 'temperature'
  | 'money'
  | 'plain'
  | 'unknown';

export interface Unit {
  dimension: Exclude<Dimension, 'unknown'>;
  /** Multiple of the base unit: ns, 1, bytes, bytes/s, FLOP, FLOP/s, 1/s, Hz, W, J, °C, USD. */
  scale: number;
}

const decimal = { k: 1e3, K: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15 } as const;
const binary = { Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40 } as const;

const unitWords = (dimension: Unit['dimension'], scale: number, ...words: string[]): [string, Unit][] =>
  words.map((word) => [word, { dimension, scale }]);
const prefixed = (prefixes: Readonly<Record<string, number>>, dimension: Unit['dimension'], symbol: string) =>
  Object.entries(prefixes).map(([prefix, scale]): [string, Unit] => [
    `${prefix}${symbol}`,
    { dimension, scale },
  ]);

/** Units as written after a number, as symbols and words. */
const writtenUnits: readonly [string, Unit][] = [
  ...unitWords('time', 1, 'ns', 'nanosecond', 'nanoseconds'),
  ...unitWords('time', 1e3, 'µs', 'μs', 'us', 'microsecond', 'microseconds'),
  ...unitWords('time', 1e6, 'ms', 'msec', 'millisecond', 'milliseconds'),
  ...unitWords('time', 1e9, 's', 'sec', 'second', 'seconds'),
  ...unitWords('time', 60e9, 'min', 'minute', 'minutes'),
  ...unitWords('time', 3600e9, 'h', 'hour', 'hours'),
  ...unitWords('ratio', 0.01, '%', 'percent', 'per cent', 'pp', 'percentage points'),
  ...unitWords('ratio', 1, 'x', '×'),
  ...unitWords('bytes', 1, 'B', 'byte', 'bytes'),
  ...prefixed({ ...decimal, ...binary }, 'bytes', 'B'),
  ...unitWords('bytes', 1e3, 'kilobytes'),
  ...unitWords('bytes', 1e6, 'megabyte', 'megabytes'),
  ...unitWords('bytes', 1e9, 'gigabyte', 'gigabytes', 'gigs'),
  ...unitWords('bytes', 1e12, 'terabyte', 'terabytes'),
  ...unitWords('bytes', 2 ** 20, 'mebibytes'),
  ...unitWords('bytes', 2 ** 30, 'gibibytes'),
  ...['B/s', 'Bps', 'bytes/s'].flatMap((symbol) =>
    prefixed({ '': 1, ...decimal, ...binary }, 'bytes_rate', symbol),
  ),
  ...prefixed({ '': 1, ...decimal }, 'flop', 'FLOP'),
  ...prefixed({ '': 1, ...decimal }, 'flop', 'FLOPs'),
  ...['FLOP/s', 'FLOPs/s', 'FLOPS'].flatMap((symbol) => prefixed(decimal, 'flop_rate', symbol)),
  ...unitWords(
    'rate',
    1,
    'tok/s',
    'token/s',
    'tokens/s',
    'tokens per second',
    'req/s',
    'requests/s',
    'inst/s',
    '/s',
  ),
  ...unitWords('rate', 1e3, 'ktok/s', 'k tok/s', 'k tokens/s'),
  ...prefixed({ '': 1, ...decimal }, 'frequency', 'Hz'),
  ...unitWords('power', 1, 'W', 'watt', 'watts'),
  ...unitWords('power', 1e3, 'kW'),
  ...unitWords('energy', 1e-3, 'mJ'),
  ...unitWords('energy', 1, 'J', 'joule', 'joules'),
  ...unitWords('energy', 3.6e6, 'kWh'),
  ...unitWords('temperature', 1, '°C'),
  ...unitWords('money', 1, 'USD'),
  ...unitWords('plain', 1e3, 'thousand'),
  ...unitWords('plain', 1e6, 'million'),
  ...unitWords('plain', 1e9, 'billion'),
];

const units: Readonly<Record<string, Unit>> = Object.fromEntries(writtenUnits);

/** Units in lower case ("milliseconds", "gb"); the first spelling wins. */
const lowerCase = new Map(writtenUnits.toReversed().map(([word, unit]) => [word.toLowerCase(), unit]));

export const unitOf = (word: string): Unit => units[word] ?? lowerCase.get(word.toLowerCase())!;

/** Alternatives for a pattern, longest first. */
export const unitPattern = [...new Set(writtenUnits.map(([word]) => word))]
  .sort((a, b) => b.length - a.length)
  .map((word) => word.replaceAll(' ', String.raw`[\s\u00a0]`))
  .join('|');

/** Units by the suffixes of table columns and document keys. */
const suffixes: readonly [RegExp, Unit][] = [
  [/(?:^|_)ns$/, { dimension: 'time', scale: 1 }],
  [/(?:^|_)us$/, { dimension: 'time', scale: 1e3 }],
  [/(?:^|_)ms$/, { dimension: 'time', scale: 1e6 }],
  [/(?:^|_)bytes_per_s$/, { dimension: 'bytes_rate', scale: 1 }],
  [/(?:^|_)gb_per_s$/, { dimension: 'bytes_rate', scale: 1e9 }],
  [/(?:^|_)flops?_per_s$/, { dimension: 'flop_rate', scale: 1 }],
  [/(?:^|_)tflops?_per_s$/, { dimension: 'flop_rate', scale: 1e12 }],
  [/(?:^|_)per_s$/, { dimension: 'rate', scale: 1 }],
  [/(?:^|_)(?:s|seconds)$/, { dimension: 'time', scale: 1e9 }],
  [/(?:^|_)(?:share|ratio|mfu|mbu|confidence)$/, { dimension: 'ratio', scale: 1 }],
  [/(?:^|_)(?:percent|pct)$/, { dimension: 'ratio', scale: 0.01 }],
  [/(?:^|_)gb$/, { dimension: 'bytes', scale: 1e9 }],
  [/(?:^|_)gib$/, { dimension: 'bytes', scale: 2 ** 30 }],
  [/(?:^|_)mb$/, { dimension: 'bytes', scale: 1e6 }],
  [/(?:^|_)mib$/, { dimension: 'bytes', scale: 2 ** 20 }],
  [/(?:^|_)bytes(?:_total)?$/, { dimension: 'bytes', scale: 1 }],
  [/(?:^|_)flops?$/, { dimension: 'flop', scale: 1 }],
  [/(?:^|_)mhz$/, { dimension: 'frequency', scale: 1e6 }],
  [/(?:^|_)w$/, { dimension: 'power', scale: 1 }],
  [/(?:^|_)mj$/, { dimension: 'energy', scale: 1e-3 }],
  [/(?:^|_)j$/, { dimension: 'energy', scale: 1 }],
  [/(?:^|_)c$/, { dimension: 'temperature', scale: 1 }],
  [
    /(?:^|_)(?:counts?|n|launches|kernels|copies|calls|rows|instances|layers|gaps|tokens|steps|runs|parameters|batch_size|registers|blocks|requests)$/,
    { dimension: 'plain', scale: 1 },
  ],
];

/** The unit in the name of a column or key; null without one. */
export const unitOfKey = (key: string): Unit | null =>
  suffixes.find(([pattern]) => pattern.test(key.toLowerCase()))?.[1] ?? null;

/** Units of figures ({value, unit}) in documents. */
const figureUnits: Readonly<Record<string, Unit>> = {
  ratio: { dimension: 'ratio', scale: 1 },
  share: { dimension: 'ratio', scale: 1 },
};

export const unitOfFigure = (unit: string): Unit => {
  const known = figureUnits[unit] ?? units[unit];
  if (known) return known;
  const rate = /^(B|FLOP)\/s$/.exec(unit)?.[1];
  if (rate !== undefined) return { dimension: rate === 'B' ? 'bytes_rate' : 'flop_rate', scale: 1 };
  return { dimension: 'plain', scale: 1 };
};

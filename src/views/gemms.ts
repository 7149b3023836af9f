import type { Document } from '../model/document.js';
import type { Gemm, GemmsResult } from '../model/documents/gemms.js';
import type { PhaseKind } from '../model/documents/trace-phase.js';
import { type Figure, missing } from '../model/figure.js';
import type { Block, Text, View } from './block.js';
import { shapeLabel } from '../vocabulary/gemm-shape.js';
import { movedPerSecond, oncePerShape, usedShare, largeGemms } from './gemm-rows.js';
import { type ColumnOf, tableOf } from './table-of.js';
import { plural } from '../vocabulary/format.js';
import { phaseLabel } from '../vocabulary/stages.js';

/** Rows of a table; further shapes are folded below it. */
const maxShapes = 20;
/** Maximum shapes in a summary. */
const briefShapes = 8;

/** GEMMs by shape: calls, speed, tiles. @param limit rows of the table */
export function gemmsView(document: Document<GemmsResult>, limit = maxShapes): View {
  const { data } = document;
  const { constant } = columnsOf(oncePerShape(data.gemms).rows);
  return {
    command: 'gemm',
    title: [
      ...(data.gpu === null ? [] : [data.gpu]),
      ...(data.stage === undefined ? [] : [data.stage]),
      ...constant,
    ].join(' · '),
    document,
    session: { id: null, started_at: '' },
    lead: gemmBlocks(document, limit),
    sections: [],
  };
}

/**
 * The table of shapes, the meaning of its columns, and the effect of other sizes.
 * @param linkTo link to a GEMM's page, undefined if it has none
 */
export function gemmBlocks(
  { data, issues }: Document<GemmsResult>,
  limit = maxShapes,
  linkTo: (gemm: Gemm) => string | undefined = () => undefined,
): Block[] {
  const { rows, leftOut } = oncePerShape(data.gemms);
  if (rows.length === 0) return [{ type: 'text', text: 'No GEMM has a known shape.' }];
  const { columns, constant } = columnsOf(rows, linkTo);
  const about = [...(data.gpu === null ? [] : [data.gpu]), ...constant].join(', ');
  const title = `GEMMs by shape${about === '' ? '' : ` (${about})`}: M tokens × N output features × K inner dimension`;
  const others = rows.slice(limit);
  return [
    tableOf(title, columns, rows.slice(0, limit), { brief: briefShapes, filter: true }),
    ...(others.length === 0
      ? []
      : ([
          { type: 'text', level: 2, text: `… and ${others.length} more (gemm --limit N)` },
          {
            type: 'fold',
            level: 3,
            title: `${others.length} more`,
            blocks: [tableOf(title, columns, others)],
          },
        ] satisfies Block[])),
    { type: 'notes', level: 2, items: [columnNote(rows), ...leftOutNotes(leftOut)].filter(Boolean) },
    ...faultNotes(rows.slice(0, limit)),
    ...predictedChanges(rows.slice(0, limit)),
    ...algorithmBlocks(rows.slice(0, limit)),
    { type: 'issues', level: 2, issues },
  ];
}

const sourceLabels: Record<Gemm['source'], string> = {
  profiler: 'profiler',
  'cublas-log': 'cuBLAS log',
  'cublaslt-log': 'cuBLASLt log',
  log: 'log',
};

const tilingCell =
  (cell: (tiling: Gemm['tilings'][number]) => Text) =>
  ({ tilings: [tiling] }: Gemm) =>
    tiling ? cell(tiling) : { missing: 'no kernel name or log has the tile' };
const noRoof = missing('no_roof', 'roof unknown');

/** "rank-0" and "rank-1" for `rank-0-torch-profiler` and `rank-1-torch-profiler`: names without the parts at which all of them end. */
function shortNames(names: readonly string[]): Map<string, string> {
  const parts = names.map((name) => name.split('-'));
  let common = 0;
  while (
    parts.every((list) => list.length > common + 1 && list.at(-1 - common) === parts[0]!.at(-1 - common))
  )
    common++;
  return new Map(
    names.map((name, index) => [name, parts[index]!.slice(0, parts[index]!.length - common).join('-')]),
  );
}

/** Columns of the table; a value that is equal in all rows is in `constant` and has no column. */
function columnsOf(
  gemms: readonly Gemm[],
  linkTo: (gemm: Gemm) => string | undefined = () => undefined,
): { columns: ColumnOf<Gemm>[]; constant: string[] } {
  const types = [...new Set(gemms.map(({ dtype }) => dtype ?? 'type unknown'))];
  const sources = [...new Set(gemms.map(({ source }) => sourceLabels[source]))];
  const captures = shortNames([...new Set(gemms.map(({ capture_id: id }) => id))]);
  const number = { numeric: true } as const;
  const gemmCell = (gemm: Gemm): Text => {
    const [text, link] = [shapeLabel(gemm), linkTo(gemm)];
    return link === undefined ? text : { link, text };
  };
  return {
    constant: [types, sources].flatMap((values) => (values.length === 1 ? values : [])),
    columns: [
      { id: 'shape', head: 'M × N × K', wraps: true, cell: gemmCell },
      ...(types.length > 1 ? [{ id: 'dtype', head: 'type', cell: typeOf }] : []),
      ...(sources.length > 1
        ? [{ id: 'source', head: 'from', cell: ({ source }: Gemm) => sourceLabels[source] }]
        : []),
      // Several captures of one source, as of the ranks of a job, may have the same shapes.
      ...(captures.size > sources.length
        ? [{ id: 'capture', head: 'capture', cell: ({ capture_id: id }: Gemm) => captures.get(id)! }]
        : []),
      { id: 'stages', head: 'stages', drop: 0, cell: stagesOf },
      { id: 'calls', head: 'calls', ...number, cell: ({ calls }) => ({ count: calls }) },
      { id: 'total_ns', head: 'time', ...number, cell: ({ total_time_ns: figure }) => ({ figure }) },
      {
        id: 'achieved_flops',
        head: 'FLOP/s',
        ...number,
        drop: 5,
        cell: ({ achieved_flops: figure }) => ({ figure }),
      },
      {
        id: 'moved_bytes_per_s',
        head: 'B/s',
        ...number,
        drop: 4,
        cell: (gemm) => ({ figure: movedPerSecond(gemm) }),
      },
      {
        id: 'peak_share',
        head: 'of peak',
        ...number,
        drop: 3,
        cell: ({ peak_share: figure }) => ({ figure, utilization: true }),
      },
      {
        id: 'roof_share',
        head: 'of roof',
        ...number,
        cell: ({ roof }) => ({ figure: roof?.share ?? noRoof, utilization: true }),
      },
      {
        id: 'flop',
        head: 'FLOP per call',
        ...number,
        drop: 1,
        cell: ({ flop }) => ({ n: flop, unit: 'FLOP' }),
      },
      {
        id: 'flop_per_byte',
        head: 'FLOP/byte',
        ...number,
        drop: 2,
        cell: ({ arithmetic_intensity: figure }) => withoutUnit(figure),
      },
      { id: 'tile', head: 'tile', cell: tilingCell(({ tile }) => tile) },
      { id: 'waves', head: 'waves', ...number, cell: tilingCell(({ waves }) => wavesOf(waves)) },
      {
        id: 'tile_efficiency',
        head: 'tiles filled',
        ...number,
        drop: 2,
        cell: tilingCell(({ tile_efficiency: figure }) => ({ figure })),
      },
      {
        id: 'used',
        head: 'SMs used',
        ...number,
        cell: (gemm) => ({ figure: usedShare(gemm), utilization: true }),
      },
      { id: 'made_by', head: madeByHead(gemms), drop: 0, cell: madeBy },
    ],
  };
}

const withoutUnit = (figure: Figure): Text =>
  figure.value === null ? { figure } : { n: figure.value, unit: '' };
const wavesOf = (figure: Figure): Text =>
  figure.value === null ? { figure } : { n: figure.value, unit: '', digits: figure.value < 0.1 ? 1 : 2 };
const typeOf = ({ dtype }: Gemm): Text => dtype ?? { missing: 'the source does not name the type' };
const stagesOf = ({ stages }: Gemm): Text =>
  stages.length === 0
    ? { missing: 'the source has no stages' }
    : stages.map((kind) => phaseLabel(kind as PhaseKind)).join(', ');
/** A profiler names operators, a log algorithms. */
const madeByHead = (gemms: readonly Gemm[]): string =>
  gemms.every(({ source }) => source === 'profiler')
    ? 'operator'
    : gemms.some(({ source }) => source === 'profiler')
      ? 'operator or algorithm'
      : 'algorithm';

const madeBy = ({ made_by: [first, ...others] }: Gemm): Text =>
  first === undefined
    ? { missing: 'the source names no operator or algorithm' }
    : {
        text: first.name,
        hint: [first, ...others].map(({ name, calls }) => `${calls} × ${name}`).join('\n'),
      };

const roofNotes = {
  measured: 'roofs measured on this GPU',
  sheet: "the data sheet's peak and bandwidth",
};

function columnNote(rows: readonly Gemm[]): string {
  const from = rows.map(({ roof }) => roof?.from ?? null).find((source) => source !== null);
  const roof =
    from === undefined || rows.every(({ achieved_flops: rate }) => rate.value === null)
      ? ''
      : `of roof: max(FLOP / peak, bytes / bandwidth) / time per call (${roofNotes[from]}). `;
  return rows.some((gemm) => usedShare(gemm).value !== null)
    ? `${roof}SMs used: tiles filled (M×N / area of its tiles) × waves / (waves rounded up); the rest is tile edges and idle SMs.`
    : roof.trim();
}

function leftOutNotes(leftOut: readonly [Gemm['source'], number][]): string[] {
  if (leftOut.length === 0) return [];
  const shapes = leftOut.map(([source, count]) => `${plural(count, 'shape')} of the ${sourceLabels[source]}`);
  return [
    `${shapes.join(' and ')} omitted: another source has the same shapes with more detail (cuBLAS calls cuBLASLt).`,
  ];
}

/** Texts with the shapes that they apply to. */
function byText(gemms: readonly Gemm[], textsOf: (gemm: Gemm) => readonly string[]): string[] {
  const shapes = new Map<string, string[]>();
  for (const gemm of largeGemms(gemms))
    for (const text of textsOf(gemm)) shapes.set(text, [...(shapes.get(text) ?? []), shapeLabel(gemm)]);
  return [...shapes].map(([text, names]) => `${names.join(', ')}: ${text}`);
}

function faultNotes(gemms: readonly Gemm[]): Block[] {
  const items = byText(gemms, ({ alignment_faults: faults }) =>
    faults.length > 0 ? [faults.join('; ')] : [],
  );
  return items.length === 0
    ? []
    : [
        { type: 'heading', level: 2, text: 'Not aligned for tensor cores' },
        { type: 'notes', level: 2, items },
      ];
}

/** Predicted effect of padding or another batch size, with the names of the models used. */
function predictedChanges(gemms: readonly Gemm[]): Block[] {
  const all = largeGemms(gemms).flatMap((gemm) => (gemm.what_if ?? []).map((change) => ({ gemm, change })));
  if (all.length === 0) return [];
  const models = all.flatMap(({ change: { time_ratio: time } }) =>
    time.value === null ? [] : [time.source],
  );
  const ratio = (figure: Figure): Text =>
    figure.value === null ? { figure } : [{ n: figure.value, unit: '' }, '×'];
  return [
    { type: 'heading', level: 2, text: 'Predicted effect of other sizes (model, not measured)' },
    {
      type: 'notes',
      level: 2,
      items: [
        ...byText(gemms, ({ what_if: gemmChanges = [] }) => gemmChanges.map(({ text }) => text)),
        ...[...new Set(models)].map((model) => `Assumed: ${model}.`),
      ],
    },
    {
      type: 'fold',
      level: 3,
      title: `Predicted times of ${all.length} other sizes`,
      blocks: [
        tableOf(
          'Time per call and useful work per second, relative to now',
          [
            { id: 'shape', head: 'M × N × K', cell: ({ gemm }) => shapeLabel(gemm) },
            { id: 'to', head: 'to', cell: ({ change: { m, n, k } }) => `${m}×${n}×${k}` },
            { id: 'time_ratio', head: 'time', numeric: true, cell: ({ change }) => ratio(change.time_ratio) },
            { id: 'rate_ratio', head: 'rate', numeric: true, cell: ({ change }) => ratio(change.rate_ratio) },
          ],
          all,
        ),
      ],
    },
  ];
}

/** Layout and algorithm from a log. */
function algorithmBlocks(gemms: readonly Gemm[]): Block[] {
  const logged = gemms.filter(({ source, layout }) => source !== 'profiler' && layout !== null);
  if (logged.length === 0) return [];
  return [
    { type: 'heading', level: 2, text: 'Layouts and algorithms' },
    {
      ...tableOf(
        'From the log',
        [
          { id: 'shape', head: 'M × N × K', cell: shapeLabel },
          { id: 'layout', head: 'layout', cell: ({ layout }) => layout ?? '' },
          {
            id: 'compute_type',
            head: 'compute type',
            cell: ({ compute_type: type }) => type ?? { missing: 'the log does not name it' },
          },
          { id: 'algorithm', head: 'algorithm', wraps: true, cell: madeBy },
        ],
        logged,
      ),
      level: 2,
    },
  ];
}

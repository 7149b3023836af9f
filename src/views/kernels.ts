import type { Document } from '../model/document.js';
import type { KernelResult, KernelsResult } from '../model/documents/kernels.js';
import type { Figure } from '../model/figure.js';
import { caseLabel, caseOutcomeLabels } from '../vocabulary/kernel-cases.js';
import type { Block, Section, Text, View } from './block.js';
import { linked, type Places, pointPlace } from './findings.js';
import { caseSections, labelOf } from './kernels-cases.js';
import { mapChart, rooflineChart, cellsOf, casesWithFlops } from './kernels-series.js';
import { stepSections } from './kernels-steps.js';
import { formatSetting, plural } from '../vocabulary/format.js';

/** Operations of LLMs or of one model: the time of each, and its share of the roofline. */
export function kernelsView(document: Document<KernelsResult>, places?: Places): View {
  const { data, issues } = document;
  const { session } = data;
  return {
    command: 'kernels',
    title: title(data),
    document,
    session,
    lead: [
      {
        type: 'facts',
        items: [
          { name: 'measured', text: protocol(data) },
          { name: 'roofs', text: roofs(data) },
        ],
      },
      { type: 'facts', level: 2, items: extremes(data) },
      { type: 'issues', issues },
    ],
    sections: [
      ...stepSections(data),
      ...(casesWithFlops(data).length > 0 ? [rooflineSection(data, places)] : []),
      ...(data.maps.length > 0 ? [sweepSection(data)] : []),
      ...caseSections(data),
      definitions,
    ],
  };
}

/** "gemm, softmax float32 · onnxruntime 1.30.0, CPU, 1 thread" */
function title({
  model,
  cases,
  plan: { engine, device, device_facts: facts, threads },
}: KernelsResult): string {
  const kernels = [...new Set(cases.map(({ kernel }) => kernel))];
  const dtypes = [...new Set(cases.map(({ dtype }) => dtype))].join(', ');
  const what = model
    ? `${model.name} ${model.dtype}`
    : `${kernels.length > 3 ? `${kernels.length} kernels` : kernels.join(', ')} ${dtypes}`;
  const deviceName = device === 'cpu' ? 'CPU' : (facts?.name ?? device);
  const engineName = `${engine.name} ${engine.version ?? ''}`.trim();
  return `${what} · ${engineName}, ${deviceName}${threads === null ? '' : `, ${plural(threads, 'thread')}`}`;
}

/** How the figures were measured. */
function protocol({ plan, cases: all }: KernelsResult): Text {
  const cases = all.filter((result) => result.runs > 0);
  const { runs, target_half_width, max_seconds: seconds, check } = plan.protocol;
  const graphs = cases.filter(({ method }) => method === 'graph').length;
  const how = plan.device === 'cpu' ? 'timed over several repeats per call' : 'launched as a CUDA graph';
  return [
    { count: runs },
    ' or more runs per case until the 95 % interval of the mean is within ± ',
    { n: target_half_width, unit: 'ratio' },
    `, at most ${formatSetting(seconds, 's')}${graphs === 0 ? '' : `; ${graphs} of ${plural(cases.length, 'case')} ${how}`}; ${check ? 'results checked against float64' : 'results not checked'}`,
  ];
}

/** Source of the rooflines. */
function roofs({ roofs: { bytes_per_s: bandwidth, compute, levels } }: KernelsResult): Text {
  if (bandwidth.value === null) return bandwidth.reason.text;
  const rates: Text[] = levels.map(({ level, low_bytes_per_s: low, high_bytes_per_s: high }): Text => [
    `${level} `,
    ...(low < 0.99 * high ? [{ n: low, unit: 'B/s' }, ' to '] : []),
    { n: high, unit: 'B/s' },
  ]);
  if (levels.length === 0) rates.push({ figure: bandwidth });
  const peaks = compute.filter(({ flops_per_s: peak }) => peak.value !== null);
  rates.push(...peaks.map(({ dtype, flops_per_s: peak }): Text => [`${dtype} `, { figure: peak }]));
  const source = sourceOf(levels.length === 0 ? bandwidth : (peaks[0]?.flops_per_s ?? bandwidth));
  return [
    ...rates.flatMap((rate, index) => [index === 0 ? '' : ', ', ...[rate].flat()]),
    `: ${source}${levels.length === 0 ? '' : '; each operation is compared with the level of its working set'}`,
  ] as Text;
}

const sourceOf = (figure: Figure): string => (figure.value === null ? '' : figure.source);

function extremes({ cases }: KernelsResult): { name: string; text: Text }[] {
  const sorted = cases
    .filter(({ roof_share: share }) => share.value !== null)
    .toSorted((a, b) => b.roof_share.value! - a.roof_share.value!);
  const [best, worst] = [sorted[0], sorted.at(-1)];
  if (!best || !worst || best === worst) return [];
  const text = (result: KernelResult): Text => [
    `${caseLabel(result, false)} `,
    { figure: result.roof_share },
  ];
  return [
    { name: 'closest to its roof', text: text(best) },
    { name: 'furthest', text: text(worst) },
  ];
}

const rooflineSection = (data: KernelsResult, places: Places | undefined): Section => ({
  id: 'roofline',
  title: 'Roofline',
  level: 3,
  blocks: [
    {
      type: 'chart',
      label: 'Achieved FLOP/s of each operation against its arithmetic intensity, below the roofs',
      chart: rooflineChart(data, places),
      behind: {
        type: 'table',
        title: 'Operations on the roofline',
        columns: [
          { id: 'operation', head: 'operation', wraps: true },
          { id: 'flop_per_byte', head: 'FLOP/byte', numeric: true },
          { id: 'flops_per_s', head: 'achieved', numeric: true },
          { id: 'roof_share', head: 'of roof', numeric: true },
          { id: 'bound', head: 'bound' },
        ],
        rows: casesWithFlops(data).map((result) => ({
          cells: [
            linked(places?.get(pointPlace(result.case)), labelOf(data)(result)),
            { n: result.intensity!, unit: '' },
            { n: result.flops_per_s!, unit: 'FLOP/s' },
            { figure: result.roof_share, utilization: true },
            result.bound ?? { missing: 'its roof is unknown' },
          ],
        })),
      },
    },
  ],
});

const sweepSection = (data: KernelsResult): Section => ({
  id: 'sweeps',
  title: 'Sweeps',
  level: 3,
  blocks: data.maps.flatMap((map): Block[] => {
    const { series, fixed, x: across, y: down } = map;
    const cells = cellsOf(data, map);
    const name = `${series}${fixed === '' ? '' : `, ${fixed}`}`;
    return [
      { type: 'heading', text: name },
      {
        type: 'chart',
        label: `Median time of ${name} over ${across.name} and ${down.name}; a stronger color is closer to the roof, or faster if the roof is unknown`,
        chart: mapChart(data, map),
        behind: {
          type: 'table',
          title: `Median of ${name}: ${down.name} down, ${across.name} across`,
          columns: [
            { id: down.name, head: down.name },
            ...across.values.map((head) => ({ id: head, head, numeric: true })),
          ],
          rows: down.values.map((value, y) => ({
            cells: [
              value,
              ...across.values.map((_, x): Text => {
                const result = cells.find((cell) => cell.x === x && cell.y === y)?.result;
                if (!result) return { missing: 'no case of these sizes' };
                return result.median_ns === null
                  ? caseOutcomeLabels[result.outcome]
                  : { n: result.median_ns, unit: 'ns' };
              }),
            ],
          })),
        },
      },
    ];
  }),
});

const meanings: readonly [name: string, text: string][] = [
  [
    'median',
    'Over the runs of one operation in one process; rates use the median. Percentiles are linear (type 7).',
  ],
  [
    '± (95 %)',
    'Half width of the interval of the mean over the runs of one process, relative to the mean: variation within the process.',
  ],
  ['bytes', 'Every input read once and every output written once: the minimum of any implementation.'],
  [
    'FLOPs',
    'Kernels with matrix multiplications: only those, 2 per multiply-add. Other kernels: every addition, multiplication, division, comparison, exponential and root.',
  ],
  [
    'roof',
    'max(FLOPs / peak, bytes / bandwidth); kernels without matrix multiplications: bytes / bandwidth. Peaks are those measured by inferscope roofline on this machine, else those of the data sheet.',
  ],
  [
    'bound',
    'compute or memory, whichever takes longer at the roof; latency: the roofline time is below one launch (or one CUDA graph node).',
  ],
  [
    'timed by',
    'events: between two events of the device around runs. graph: replays of a CUDA graph of many operations; on a CPU copies of the operation in one graph. host: a clock of the CPU.',
  ],
  ['error', 'Against the same operation in float64: largest difference over the largest magnitude.'],
  ['memory', "Peak of the framework's allocator during the case."],
];

const definitions: Section = {
  id: 'definitions',
  title: 'Definitions',
  level: 3,
  blocks: [{ type: 'facts', items: meanings.map(([name, text]) => ({ name, text })) }],
};

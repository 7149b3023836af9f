import { fieldOf } from '../model/metric-source.js';
import type { BenchmarkMetric, BenchmarkResults } from '../model/documents/results.js';
import { unitNames } from '../vocabulary/units.js';
import type { Block, Section } from './block.js';

type Capture = BenchmarkResults['captures'][number];

const maxNames = 6;

/** The first names, and the number of the others. */
export const shortList = (names: readonly string[]): string =>
  [...names.slice(0, maxNames), ...(names.length > maxNames ? [`${names.length - maxNames} more`] : [])].join(
    ', ',
  );

/** Every definition once, those that differ from ours first; a summary shows only these. */
export function definitionSection(captures: readonly Capture[], hasForeign: boolean): Section {
  const entries = new Map<string, { tool: string; metric: BenchmarkMetric; fields: Set<string> }>();
  for (const { tool, points } of captures) {
    for (const metric of points.flatMap(({ metrics }) => metrics)) {
      const key = `${tool.name}\n${metric.name}\n${metric.definition}`;
      const entry = entries.get(key) ?? { tool: tool.name, metric, fields: new Set() };
      for (const { source } of metric.file) entry.fields.add(fieldOf(source));
      entries.set(key, entry);
    }
  }
  const all = [...entries.values()]
    .filter(({ metric }) => metric.definition !== null)
    .toSorted((a, b) => Number(a.metric.same_definition) - Number(b.metric.same_definition));
  const undefinedNames = new Set(
    [...entries.values()].flatMap(({ metric }) => (metric.definition === null ? [metric.name] : [])),
  );
  return {
    id: 'definitions',
    title: 'Definitions',
    level: hasForeign ? 2 : 3,
    blocks: [
      {
        type: 'table',
        title: 'Meaning of each metric and whether it is comparable',
        columns: [
          { id: 'metric', head: 'metric' },
          { id: 'definition', head: 'definition', wraps: 40, lines: true },
          { id: 'defined', head: 'defined', drop: 3 },
          { id: 'unit', head: 'unit', drop: 2 },
          { id: 'tool', head: 'tool', drop: 1 },
          { id: 'fields', head: 'fields', wraps: true, drop: 0 },
        ],
        rows: all.map(({ tool, metric, fields }) => ({
          level: metric.same_definition ? 3 : 2,
          cells: [
            metric.name,
            metric.definition ?? '',
            metric.same_definition ? 'same definition' : { text: 'not comparable', tone: 'fault' },
            unitNames[metric.unit] ?? metric.unit,
            tool,
            shortList([...fields]),
          ],
        })),
      },
      ...(undefinedNames.size > 0
        ? [
            {
              type: 'text',
              text: `Not defined in the file or here: ${[...undefinedNames].join(', ')}.`,
            } satisfies Block,
          ]
        : []),
    ],
  };
}

import type { OpClass } from '../../model/classes.js';
import type { PhaseKind } from '../../model/documents/trace.js';
import type { SessionDatabase } from '../../session/query.js';
import { studentT975 } from '../statistics.js';
import { figure, type Figure } from '../../model/figure.js';
import { edges, gapParts } from '../trace/phases.js';
import type { Told } from './host-split.js';
import type { Measured } from './split.js';

/** Kinds that have a waterfall: what a model is asked for, and a capture that marks nothing. */
export const waterfallKinds = ['decode', 'mixed', 'prefill', 'outside'] as const;
const kindList = `(${waterfallKinds.map((kind) => `'${kind}'`).join(', ')})`;

/** Instances that are shown one by one. */
const rowsShown = 64;

export interface WindowRow {
  stage_id: number;
  label: string;
  measured: Measured;
}

export interface KindSums {
  kind: PhaseKind;
  instances: number;
  measuredMs: Figure;
  medianMs: number | null;
  mean: Measured;
  /** Of a mean instance, by bar id: kernels, copies, gaps. */
  counts: Map<string, number>;
  rows: WindowRow[];
}

type Numbers = Record<string, number>;

/** Sums of makeWindowSums by kind: a mean instance, and the first ones. */
export async function windowRows(
  database: SessionDatabase,
  unmarked: boolean,
  frameworkShare: Map<number, number> | null,
  told: Told,
): Promise<KindSums[]> {
  const kinds = await database.query<Numbers & { kind: PhaseKind }>(
    `SELECT kind, count(*) AS n, avg(end_ns - start_ns) AS mean, stddev_samp(end_ns - start_ns) AS sd, median(end_ns - start_ns) AS median
     FROM windows WHERE kind IN ${kindList} GROUP BY kind`,
  );
  const shown = await database.query<
    Numbers & { kind: PhaseKind; raw_name: string | null; step_index: number | null }
  >(
    `SELECT kind, stage_id, raw_name, step_index, (end_ns - start_ns)::DOUBLE AS wall FROM windows WHERE kind IN ${kindList}
     QUALIFY row_number() OVER (PARTITION BY kind ORDER BY start_ns, stage_id) <= ${rowsShown} ORDER BY start_ns, stage_id`,
  );
  const ids = shown.map(({ stage_id }) => stage_id).join(', ') || 'NULL';
  const byWindow = `stage_id IN (${ids})`;
  const kernels = await database.query<Numbers & { kind: PhaseKind; class: OpClass }>(
    `SELECT kind, NULL AS stage_id, class, sum(ns) AS ns, sum(n) AS n FROM window_kernels JOIN windows USING (stage_id) WHERE kind IN ${kindList} GROUP BY kind, class
     UNION ALL SELECT NULL, stage_id, class, ns, n FROM window_kernels WHERE ${byWindow}`,
  );
  const copies = await database.query<Numbers & { kind: PhaseKind; copy: string }>(
    `SELECT w.kind, NULL AS stage_id, c.kind AS copy, sum(ns) AS ns, sum(n) AS n FROM window_copies c JOIN windows w USING (stage_id) WHERE w.kind IN ${kindList} GROUP BY ALL
     UNION ALL SELECT NULL, stage_id, kind, ns, n FROM window_copies WHERE ${byWindow}`,
  );
  const idleColumns = [...gapParts, ...edges];
  const idle = await database.query<Numbers & { kind: PhaseKind }>(
    `SELECT kind, NULL AS stage_id, ${idleColumns.map((part) => `sum(${part}) AS ${part}`).join(', ')} FROM window_idle WHERE kind IN ${kindList} GROUP BY kind
     UNION ALL SELECT NULL, stage_id, ${idleColumns.join(', ')} FROM window_idle WHERE ${byWindow}`,
  );
  const inside = await frameworkTime(database, frameworkShare);
  const counts = await database.query<Numbers & { kind: PhaseKind }>(
    `SELECT ${unmarked ? "'outside'" : 'w.kind'} AS kind, ${gapParts.map((part) => `count_if(${part}_ns > 0) AS ${part}`).join(', ')}
     FROM own_gaps ${unmarked ? '' : 'JOIN phase_of p USING (stage_id) JOIN windows w ON w.stage_id = p.step_id'} WHERE own_gaps.start_ns < ${told.untilNs} GROUP BY 1`,
  );
  return waterfallKinds.flatMap((kind): KindSums[] => {
    const about = kinds.find((one) => one.kind === kind);
    if (!about) return [];
    const n = about['n']!;
    const of = (divide: number, stage: number | null, wallNs: number): Measured => {
      const mine = <T extends Numbers & { kind: PhaseKind }>(rows: readonly T[]): T[] =>
        rows.filter((row) => (stage === null ? row.kind === kind : row['stage_id'] === stage));
      const ms = (ns: number | null | undefined) => (ns ?? 0) / divide / 1e6;
      const [parts] = mine(idle);
      const hostMs = ms(parts?.['host']);
      const within = ms(stage === null ? inside.byKind.get(kind) : inside.byWindow.get(stage));
      const classes = mine(kernels);
      return {
        wallMs: wallNs / 1e6,
        classes: new Map(
          classes.filter((row) => row.class !== 'communication').map((row) => [row.class, ms(row['ns'])]),
        ),
        communicationMs: ms(classes.find((row) => row.class === 'communication')?.['ns']),
        copies: new Map(mine(copies).map((row) => [row.copy, ms(row['ns'])])),
        idle: {
          synchronization: ms(parts?.['synchronization']),
          launch_overhead: ms(parts?.['launch_overhead']),
          launch_latency: ms(parts?.['launch_latency']),
          device_dependency: ms(parts?.['device_dependency']),
          unattributed: ms(parts?.['unattributed']),
          host: new Map([
            ['start_up', ms(parts?.['start_up'])],
            ['shut_down', ms(parts?.['shut_down'])],
            ...(frameworkShare === null
              ? ([['program', hostMs]] as const)
              : ([
                  ['framework', within],
                  ['between_operators', hostMs - within],
                ] as const)),
          ]),
        },
      };
    };
    const gaps = counts.find((row) => row.kind === kind);
    const among = told.instances.get(kind) ?? n;
    return [
      {
        kind,
        instances: n,
        measuredMs: meanFigure(about),
        medianMs: about['median'] === null ? null : about['median']! / 1e6,
        mean: of(n, null, about['mean']!),
        counts: new Map([
          ...kernels
            .filter((row) => row.kind === kind)
            .map((row): [string, number] => [`class.${row.class}`, row['n']! / n]),
          ...copies
            .filter((row) => row.kind === kind)
            .map((row): [string, number] => [`exposed_copy.${row.copy}`, row['n']! / n]),
          ...gapParts.map((part): [string, number] => [part, (gaps?.[part] ?? 0) / among]),
        ]),
        rows: shown
          .filter((row) => row.kind === kind)
          .map((row) => ({
            stage_id: row['stage_id']!,
            label: row.step_index === null ? (row.raw_name ?? kind) : `${kind} ${row.step_index}`,
            measured: of(1, row['stage_id']!, row['wall']!),
          })),
      },
    ];
  });
}

/** Host time inside operators of the framework, ns, by kind and by window. */
async function frameworkTime(database: SessionDatabase, shares: Map<number, number> | null) {
  const byKind = new Map<PhaseKind, number>();
  const byWindow = new Map<number, number>();
  if (shares === null) return { byKind, byWindow };
  const rows = await database.query<{ kind: PhaseKind; stage_id: number; host: number }>(
    'SELECT kind, stage_id, host FROM window_idle WHERE host > 0',
  );
  for (const { kind, stage_id, host } of rows) {
    const ns = host * (shares.get(stage_id) ?? 0);
    byWindow.set(stage_id, ns);
    byKind.set(kind, (byKind.get(kind) ?? 0) + ns);
  }
  return { byKind, byWindow };
}

function meanFigure({ n, mean, sd }: Numbers): Figure {
  const source = 'windows of the stage (start to start of the next, docs/measurement.md)';
  if (n === 1 || sd === null || sd === undefined) return figure(mean! / 1e6, 'ms', source, { n: n! });
  const half = (studentT975(n! - 1) * sd) / Math.sqrt(n!);
  return figure(mean! / 1e6, 'ms', source, {
    n: n!,
    sd: sd / 1e6,
    ci95: [(mean! - half) / 1e6, (mean! + half) / 1e6],
  });
}

import { gapParts } from '../../model/bars.js';
import type { OpClass } from '../../model/classes.js';
import type { Figure } from '../../model/figure.js';
import { meanFigure } from '../../model/statistics.js';
import type { SessionDatabase } from '../../session/query.js';
import { edgeCauses } from '../trace/phases.js';
import type { TraceScope } from '../trace/scope.js';
import type { CountedGaps } from './host-split.js';
import type { MeasuredTime } from './split.js';
import type { StageGroup } from './stage-group.js';

/** Number of instances shown individually. */
const maxRows = 64;

interface WindowRow {
  stage_id: number;
  label: string;
  measured: MeasuredTime;
}

export interface GroupSums {
  group: StageGroup;
  instances: number;
  measuredMs: Figure;
  medianMs: number | null;
  p10Ms: number | null;
  mean: MeasuredTime;
  /** Counts per mean instance by bar id: kernels, copies, gaps. */
  counts: Map<string, number>;
  /** The part of device_dependency due to kernels of earlier stages, by class, ms per mean instance. */
  earlier: Map<string, number>;
  rows: WindowRow[];
}

/** A sum over a group (instance null), or over one of the instances shown. */
type SumRow = Record<string, number> & { grp: string; instance: number | null; class: OpClass; copy: string };

interface SumFacts {
  groups: readonly StageGroup[];
  /** Share of a window's host time inside framework operators; null if no operators were recorded, or too many. */
  framework: Map<number, number> | null;
  /** Host time spent loading code onto the device, ns, by window. */
  loading: ReadonlyMap<number, number>;
  counted: CountedGaps;
}

/** Sums of each group: the mean instance, and the first instances individually. */
export async function windowRows(scope: TraceScope, facts: SumFacts): Promise<GroupSums[]> {
  const { database } = scope;
  const { groups, counted } = facts;
  const inner = groups.some(({ level }) => level === 'inner');
  await scope.need('spans', 'members', 'window_kernels', 'window_copies', 'window_idle');
  if (inner) await scope.need('inner_kernels', 'inner_copies', 'inner_idle');
  const statistics = await database.query<GroupStatistics>(
    `SELECT grp, count(*) AS n, avg(end_ns - start_ns) AS mean, stddev_samp(end_ns - start_ns) AS sd, median(end_ns - start_ns) AS median, quantile_cont(end_ns - start_ns, 0.1) AS p10
     FROM spans GROUP BY grp`,
  );
  await database.query(
    `CREATE OR REPLACE TEMP TABLE shown_spans AS SELECT *, (end_ns - start_ns)::DOUBLE AS wall FROM spans
     QUALIFY row_number() OVER (PARTITION BY grp ORDER BY start_ns, instance) <= ${maxRows}`,
  );
  const shown = await database.query<ShownInstance>(
    'SELECT grp, instance, label, wall FROM shown_spans ORDER BY start_ns, instance',
  );
  const sums = {
    ...(await activitySums(database, inner)),
    host: await hostTimes(database, facts),
    gaps: await gapCounts(database, counted, inner),
    earlier: inner
      ? await database.query<EarlierSum>(
          'SELECT grp, class, sum(ns) AS ns FROM inner_kernels JOIN members USING (stage_id) WHERE earlier GROUP BY ALL ORDER BY ALL',
        )
      : [],
  };
  return groups.flatMap((group): GroupSums[] => {
    const groupStatistics = statistics.find(({ grp }) => grp === group.key);
    if (!groupStatistics) return [];
    return [
      groupSums(group, groupStatistics, {
        sums,
        shown: shown.filter(({ grp }) => grp === group.key),
        countedInstances: group.level === 'inner' ? null : (counted.instances.get(group.key) ?? null),
        splitHost: facts.framework !== null && group.level !== 'inner',
      }),
    ];
  });
}

/** Times of the instances of a group, ns. */
interface GroupStatistics {
  grp: string;
  n: number;
  mean: number;
  sd: number | null;
  median: number | null;
  p10: number | null;
}

interface ShownInstance {
  grp: string;
  instance: number;
  label: string;
  wall: number;
}

interface EarlierSum {
  grp: string;
  class: string;
  ns: number;
}

interface ActivitySums {
  kernels: SumRow[];
  copies: SumRow[];
  idle: SumRow[];
}

/** Sums of kernels by class, copies by kind, and gap parts: for each group, and for each instance shown. */
async function activitySums(database: SessionDatabase, inner: boolean): Promise<ActivitySums> {
  const querySums = (windows: string, innerWindows: string, columns: string, sums: string) =>
    database.query<SumRow>(
      `WITH instance_sums AS (SELECT m.grp, m.instance, ${columns}${sums}
         FROM (${windows}${inner ? ` UNION ALL BY NAME ${innerWindows}` : ''}) JOIN members m USING (stage_id) GROUP BY ALL)
       SELECT grp, NULL::BIGINT AS instance, ${columns}${sums} FROM instance_sums GROUP BY ALL
       UNION ALL BY NAME SELECT instance_sums.* FROM instance_sums SEMI JOIN shown_spans USING (grp, instance) ORDER BY ALL`,
    );
  const idleColumns = [...gapParts, ...edgeCauses];
  return {
    kernels: await querySums(
      'SELECT stage_id, class, ns, n FROM window_kernels',
      'SELECT stage_id, class, ns, n FROM inner_kernels WHERE NOT earlier',
      'class, ',
      'sum(ns) AS ns, sum(n) AS n',
    ),
    copies: await querySums(
      'SELECT stage_id, kind AS copy, ns, n FROM window_copies',
      'SELECT stage_id, kind AS copy, ns, n FROM inner_copies',
      'copy, ',
      'sum(ns) AS ns, sum(n) AS n',
    ),
    idle: await querySums(
      `SELECT stage_id, ${idleColumns.join(', ')} FROM window_idle`,
      `SELECT stage_id, ${idleColumns.join(', ')} FROM inner_idle`,
      '',
      idleColumns.map((part) => `sum(${part}) AS ${part}`).join(', '),
    ),
  };
}

interface GroupFacts {
  sums: ActivitySums & {
    host: ReadonlyMap<string, HostNs>;
    gaps: readonly GapCounts[];
    earlier: readonly EarlierSum[];
  };
  shown: readonly ShownInstance[];
  /** Number of instances with counted gaps; null: all. */
  countedInstances: number | null;
  /** Whether host time is split into framework and the time between operators. */
  splitHost: boolean;
}

function groupSums(
  group: StageGroup,
  statistics: GroupStatistics,
  { sums, shown, countedInstances, splitHost }: GroupFacts,
): GroupSums {
  const { key } = group;
  const { n, median, p10 } = statistics;
  const rowsOf = (rows: readonly SumRow[], instance: number | null) =>
    rows.filter((row) => row.grp === key && row.instance === instance);
  const meanOver = (instances: number, instance: number | null, wallNs: number): MeasuredTime =>
    measuredOf(
      {
        kernels: rowsOf(sums.kernels, instance),
        copies: rowsOf(sums.copies, instance),
        idle: rowsOf(sums.idle, instance)[0],
        host: sums.host.get(instance === null ? key : `${key} ${instance}`),
      },
      { instances, wallNs, splitHost },
    );
  const gaps = sums.gaps.find(({ grp }) => grp === key);
  return {
    group,
    instances: n,
    measuredMs: windowMean(statistics),
    medianMs: median === null ? null : median / 1e6,
    p10Ms: p10 === null ? null : p10 / 1e6,
    mean: meanOver(n, null, statistics.mean),
    counts: new Map([
      ...rowsOf(sums.kernels, null).map((row): [string, number] => [`class.${row.class}`, row['n']! / n]),
      ...rowsOf(sums.copies, null).map((row): [string, number] => [
        `exposed_copy.${row.copy}`,
        row['n']! / n,
      ]),
      ...gapParts.map((part): [string, number] => [part, (gaps?.[part] ?? 0) / (countedInstances ?? n)]),
    ]),
    earlier: new Map(
      sums.earlier.filter(({ grp }) => grp === key).map((row) => [row.class, row.ns / n / 1e6]),
    ),
    rows: shown.map(({ instance, label, wall }) => ({
      stage_id: instance,
      label,
      measured: meanOver(1, instance, wall),
    })),
  };
}

interface HostNs {
  framework: number;
  loading: number;
}

function measuredOf(
  rows: { kernels: SumRow[]; copies: SumRow[]; idle: SumRow | undefined; host: HostNs | undefined },
  { instances, wallNs, splitHost }: { instances: number; wallNs: number; splitHost: boolean },
): MeasuredTime {
  const ms = (ns: number | null | undefined) => (ns ?? 0) / instances / 1e6;
  const { kernels, copies, idle, host } = rows;
  const hostMs = ms(idle?.['host']);
  const framework = ms(host?.framework);
  const loading = ms(host?.loading);
  return {
    wallMs: wallNs / 1e6,
    classes: new Map(
      kernels.filter((row) => row.class !== 'communication').map((row) => [row.class, ms(row['ns'])]),
    ),
    communicationMs: ms(kernels.find((row) => row.class === 'communication')?.['ns']),
    copies: new Map(copies.map((row) => [row.copy, ms(row['ns'])])),
    idle: {
      synchronization: ms(idle?.['synchronization']),
      launch_overhead: ms(idle?.['launch_overhead']),
      launch_latency: ms(idle?.['launch_latency']),
      device_dependency: ms(idle?.['device_dependency']),
      unattributed: ms(idle?.['unattributed']),
      host: new Map([
        ['start_up', ms(idle?.['start_up'])],
        ['shut_down', ms(idle?.['shut_down'])],
        ['loading_code', loading],
        ...(splitHost
          ? ([
              ['framework', framework],
              ['between_operators', hostMs - framework - loading],
            ] as const)
          : ([['program', hostMs - loading]] as const)),
      ]),
    },
  };
}

type GapCounts = Record<string, number> & { grp: string };

/** Number of gaps that contain each part, by group. A gap belongs to the step of the work after it. */
async function gapCounts(
  database: SessionDatabase,
  counted: CountedGaps,
  inner: boolean,
): Promise<GapCounts[]> {
  const stageCounts = gapParts.map((part) => `count_if(${part}_ns > 0)::DOUBLE AS ${part}`).join(', ');
  const innerCounts = gapParts.map((part) => `sum(n_${part})::DOUBLE AS ${part}`).join(', ');
  return database.query(
    `WITH of_window AS (SELECT step_id AS stage_id, ${stageCounts} FROM phase_gaps WHERE start_ns < ${counted.untilNs} GROUP BY step_id)
     SELECT grp, ${gapParts.map((part) => `sum(${part}) AS ${part}`).join(', ')} FROM of_window JOIN members USING (stage_id) GROUP BY grp
     ${inner ? `UNION ALL BY NAME SELECT grp, ${innerCounts} FROM inner_idle JOIN members USING (stage_id) GROUP BY grp` : ''}`,
  );
}

/** Parts of host time, ns, by group and by "group instance". */
async function hostTimes(
  database: SessionDatabase,
  { framework, loading }: SumFacts,
): Promise<Map<string, HostNs>> {
  const hostNsByGroup = new Map<string, HostNs>();
  if (framework === null && loading.size === 0) return hostNsByGroup;
  const rows = await database.query<{ grp: string; instance: number; stage_id: number; host: number }>(
    'SELECT grp, instance, stage_id, host FROM window_idle JOIN members USING (stage_id) WHERE host > 0',
  );
  for (const { grp, instance, stage_id, host } of rows) {
    const frameworkNs = host * (framework?.get(stage_id) ?? 0);
    const loadingNs = Math.min(host - frameworkNs, loading.get(stage_id) ?? 0);
    for (const key of [grp, `${grp} ${instance}`]) {
      const sums = hostNsByGroup.get(key) ?? { framework: 0, loading: 0 };
      sums.framework += frameworkNs;
      sums.loading += loadingNs;
      hostNsByGroup.set(key, sums);
    }
  }
  return hostNsByGroup;
}

function windowMean({ n, mean, sd }: GroupStatistics): Figure {
  return meanFigure(
    { mean: mean / 1e6, sd: sd === null ? null : sd / 1e6, n },
    'ms',
    'windows of the stage (start to start of the next, docs/concepts/stages-and-clocks.md)',
  );
}

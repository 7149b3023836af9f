import type { StageKind } from '../../model/record.js';
import { interrupted } from '../interrupted.js';
import type { Issue } from '../../model/document.js';
import type { Row } from '../../model/tables.js';
import type { ImportTarget } from '../../model/workbench.js';
import type { CaptureFacts, Fact, ImportContext, Importer, ImportOutcome } from '../importer.js';
import { stageNameReader } from '../stage-names.js';
import { badPage, readCsvRecords } from './csv.js';
import { detailsMetric } from './details-metrics.js';
import { type Launch, Launches } from './launches.js';
import { nvtxRanges, nvtxThread, phaseOf } from './nvtx-path.js';
import { type BaseUnit, baseUnit, counterValue } from './units.js';

/**
 * `ncu … --csv` pages: raw (one column per metric, units in the second row), details (one row per metric, with rule
 * rows between) and the direct output of `ncu --csv --metrics …`. Every number goes into `counters`, in base units,
 * under the metric's name; texts ("CachePreferNone") are not counters and are skipped. Tested with 2025.3 and older
 * pages.
 *
 * Columns with a kernel's launch parameters become metrics under ncu's names if the page does not have them:
 * launch__grid_dim_x…, launch__block_dim_x…, launch__stream_id, device__attribute_compute_capability_*; `ncu__id` is
 * the profiling order. launch_ordinal counts the *profiled* launches of a name in a process: with --launch-skip it is
 * not the ordinal within the run.
 */
export const ncuCsvImporter = {
  name: 'ncu-csv',
  sniff: (firstBytes) => /^"?ID"?,"?Process ID"?,"?Process Name"?,/m.test(firstBytes),
  async facts(path): Promise<CaptureFacts> {
    const hardware: Record<string, Fact> = {};
    for await (const { page, fields } of readKernelRecords(path)) {
      const [major, minor] = field(page, fields, 'CC').split('.');
      if (major) hardware['gpu_compute_capability'] = `${major}.${minor ?? '0'}`;
      for (const [metric, fact] of Object.entries(deviceFacts)) {
        const column = page.index.get(metric);
        if (column === undefined) continue;
        const text = fields[column]!;
        const value = fact === 'gpu_name' ? text : counterValue(text);
        if (value !== undefined && value !== '') hardware[fact] = value;
      }
      break;
    }
    return {
      tool: { name: 'ncu', version: null },
      realtime_zero_ns: null,
      command: null,
      hardware,
      software: {},
      purpose: 'counters',
    };
  },
  async load(path, { sink }: Pick<ImportTarget, 'sink'>, context): Promise<ImportOutcome> {
    const launches = new Launches(context);
    const readName = stageNameReader(context.stageNames);
    let rules = 0;
    for await (const { page, fields, line } of readKernelRecords(path)) {
      if (context.signal?.aborted) throw interrupted(`the import of ${path}`);
      const launch = launches.launchOf(page, fields[0]!, (name) => field(page, fields, name));
      if (launch === null) continue;
      const keys = rowKeys(page, fields, launch, context, (name) => readName(name).kind);
      const put = (metric: string, value: number | null, unit: string | null) =>
        sink.append('counters', { ...keys, metric, value, unit });
      if (launch.isNew)
        launchMetrics(page, fields, (metric, value, unit) => {
          if (!launch.isRepeated(metric)) put(metric, value, unit);
        });
      if (page.kind === 'raw') {
        if (fields.length < page.names.length) {
          throw badPage(
            path,
            `line ${line} has ${fields.length} of ${page.names.length} columns: it is cut off`,
          );
        }
        page.metrics.forEach(({ column, name, base }) => {
          const text = fields[column]!;
          if (text === '' || launch.isRepeated(name)) return;
          const value = counterValue(text);
          if (value !== undefined) put(name, value === null ? null : value * base.factor, base.unit);
        });
      } else {
        const label = field(page, fields, 'Metric Name');
        if (label === '') {
          rules++;
          continue;
        }
        const value = counterValue(field(page, fields, 'Metric Value'));
        if (value === undefined) continue;
        const base = baseUnit(field(page, fields, 'Metric Unit'));
        const name = detailsMetric(field(page, fields, 'Section Name'), label);
        if (launch.isRepeated(name)) continue;
        put(name, value === null ? null : value * base.factor, base.unit);
      }
    }
    launches.share();
    return {
      clock: { name: 'none', resolution_ns: 1, error_bound_ns: null },
      issues: launchIssues(launches, rules),
    };
  },
} satisfies Importer;

const deviceFacts: Record<string, string> = {
  device__attribute_display_name: 'gpu_name',
  device__attribute_multiprocessor_count: 'gpu_sm_count',
};

interface Page {
  kind: 'raw' | 'details';
  names: string[];
  index: Map<string, number>;
  /** Raw pages: the metric columns. */
  metrics: { column: number; name: string; base: BaseUnit }[];
}

/** Records of kernels; anything else (ncu's own messages, the program's output) is skipped. */
async function* readKernelRecords(
  path: string,
): AsyncGenerator<{ page: Page; fields: string[]; line: number }> {
  let page: Page | null = null;
  let kernels = 0;
  for await (const { fields, line } of readCsvRecords(path)) {
    if (fields[0] === 'ID' && fields.includes('Kernel Name')) {
      page = newPage(fields);
    } else if (page?.kind === 'raw' && page.metrics.length === 0) {
      page.metrics = page.names
        .map((name, column) => ({ column, name, base: baseUnit(fields[column] ?? '') }))
        .filter(({ column }) => column > page!.index.get('CC')!);
      if (fields.length < page.names.length)
        throw badPage(path, `its row of units (line ${line}) is cut off`);
    } else if (page && /^\d+$/.test(fields[0]!) && fields.length > page.index.get('Kernel Name')!) {
      kernels++;
      yield { page, fields, line };
    }
  }
  if (!page) throw badPage(path, 'it has no header line that starts with "ID","Process ID"');
  if (kernels === 0) {
    throw badPage(path, 'it has a header but no kernel: nothing was profiled, or the file is cut off');
  }
}

function newPage(names: string[]): Page {
  const index = new Map(names.map((name, i) => [name, i]));
  if (!index.has('CC')) index.set('CC', index.get('Device') ?? index.get('Kernel Name')!);
  return { kind: index.has('Metric Name') ? 'details' : 'raw', names, index, metrics: [] };
}

function field(page: Page, fields: string[], name: string): string {
  const column = page.index.get(name);
  return column === undefined ? '' : (fields[column] ?? '');
}

function integer(text: string): number | null {
  return /^[\d,]+$/.test(text) ? Number(text.replaceAll(',', '')) : null;
}

function rowKeys(
  page: Page,
  fields: string[],
  launch: Launch,
  context: ImportContext,
  kindOf: (range: string) => StageKind,
): Row<'counters'> {
  const pushPop = field(page, fields, pushPopColumn);
  const ranges = nvtxRanges(pushPop, field(page, fields, startEndColumn));
  return {
    execution_id: context.execution_id,
    capture_id: launch.captureId,
    host: context.host,
    pid: integer(field(page, fields, 'Process ID')),
    rank: 0,
    tid: nvtxThread(pushPop),
    device: integer(field(page, fields, 'Device')),
    context: integer(field(page, fields, 'Context')),
    kernel_name: field(page, fields, 'Kernel Name'),
    launch_ordinal: launch.ordinal,
    nvtx_path: ranges.length > 0 ? ranges.join(' / ') : null,
    phase: phaseOf(ranges, kindOf),
  };
}

const pushPopColumn = 'thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg';
const startEndColumn = 'Id:Domain:Start/Stop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg';

function launchMetrics(
  page: Page,
  fields: string[],
  put: (metric: string, value: number | null, unit: string | null) => void,
): void {
  const addMetric = (metric: string, value: number | null | undefined, unit: string | null = null) => {
    if (value !== null && value !== undefined && !page.index.has(metric)) put(metric, value, unit);
  };
  addMetric('ncu__id', integer(fields[0]!));
  addMetric('launch__stream_id', integer(field(page, fields, 'Stream')));
  const dimensions = (column: string) => field(page, fields, column).match(/\d+/g)?.map(Number) ?? [];
  const grid = dimensions('Grid Size');
  const block = dimensions('Block Size');
  for (const [i, axis] of ['x', 'y', 'z'].entries()) {
    addMetric(`launch__grid_dim_${axis}`, grid[i]);
    addMetric(`launch__block_dim_${axis}`, block[i], 'block');
  }
  const [major, minor] = field(page, fields, 'CC').split('.');
  addMetric('device__attribute_compute_capability_major', integer(major ?? ''));
  addMetric('device__attribute_compute_capability_minor', integer(minor ?? ''));
}

function launchIssues({ count: launches, repeated }: Launches, rules: number): Issue[] {
  const list: Issue[] = [];
  if (launches > 0) {
    list.push({
      code: 'ncu_replayed',
      severity: 'info',
      text: 'Nsight Compute runs each kernel alone, by default with flushed caches and locked clocks (--cache-control, --clock-control): durations differ from those of the run.',
      count: launches,
    });
  }
  if (repeated > 0) {
    list.push({
      code: 'ncu_repeated',
      severity: 'warning',
      text: 'Records of launches were dropped, because an earlier page has them.',
      count: repeated,
    });
  }
  if (rules > 0) {
    list.push({
      code: 'ncu_rules_left_out',
      severity: 'info',
      text: "NVIDIA's rule texts in the details page were skipped; the bound is computed from the counters by the same logic.",
      count: rules,
    });
  }
  return list;
}

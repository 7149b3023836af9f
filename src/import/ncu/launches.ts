import type { ImportContext } from '../importer.js';

export interface Launch {
  /** The capture of the page that has its first record. */
  captureId: string;
  ordinal: number;
  isNew: boolean;
  /**
   * Details pages repeat a metric in several sections, and a raw page after them has their metrics.
   * @returns whether an earlier record of the launch has the metric
   */
  isRepeated(metric: string): boolean;
}

interface SeenLaunch {
  captureId: string;
  ordinal: number;
  isInRawPage: boolean;
  /** Metrics of a details page. Those of a raw page are not stored: thousands per launch. */
  metrics: Set<string>;
}

/** Launches of the files that were imported before. */
class SharedLaunches {
  readonly seen = new Map<string, SeenLaunch>();
}

/** Columns that are equal in all pages of one report, after ncu's ID. */
const identity = ['Process ID', 'Process Name', 'Host Name', 'Kernel Name', 'Grid Size', 'Block Size'];

/** Counts the launches of each kernel name in each process. A launch is one ncu ID; its records on a page are consecutive. */
export class Launches {
  count = 0;
  /** Number of records of launches that an earlier page has. */
  repeated = 0;
  private readonly seen = new Map<string, SeenLaunch>();
  private readonly earlier: Map<string, SeenLaunch>;
  private readonly captureId: string;
  private readonly ordinals = new Map<string, number>();
  private id = '';
  private page: object | null = null;
  private current: Launch | null = null;

  constructor({ capture_id, shared }: Pick<ImportContext, 'capture_id' | 'shared'>) {
    this.captureId = capture_id;
    this.earlier = shared?.of(SharedLaunches).seen ?? new Map<string, SeenLaunch>();
  }

  /** Null for a record that an earlier page has: the same page again, or a details page after the raw one, which has every metric. */
  launchOf(page: { kind: 'raw' | 'details' }, ncuId: string, field: (name: string) => string): Launch | null {
    const id = `${ncuId} ${field('Process ID')}`;
    const isRaw = page.kind === 'raw';
    // A raw page has one record per launch.
    if (this.current && id === this.id && page === this.page && !isRaw)
      return { ...this.current, isNew: false };
    const launchKey = [ncuId, ...identity.map(field)].join('\n');
    const known = this.seen.get(launchKey) ?? this.otherPage(launchKey, isRaw);
    if (known && (known.isInRawPage || !isRaw)) {
      this.repeated++;
      return null;
    }
    const launch = known ?? this.add(launchKey, `${field('Process ID')} ${field('Kernel Name')}`);
    launch.isInRawPage = isRaw;
    const { captureId, ordinal, metrics } = launch;
    this.id = id;
    this.page = page;
    this.current = {
      captureId,
      ordinal,
      isNew: known === undefined,
      isRepeated: (metric) => (isRaw ? metrics.has(metric) : metrics.size === metrics.add(metric).size),
    };
    return this.current;
  }

  /** Makes the launches of this file known to the next ones. */
  share(): void {
    for (const [key, launch] of this.seen) this.earlier.set(key, launch);
  }

  /** The launch in the other page of the same report. Two pages of one kind are two reports: in containers, process ids repeat. */
  private otherPage(launchKey: string, isRaw: boolean): SeenLaunch | undefined {
    const known = this.earlier.get(launchKey);
    return known?.isInRawPage === !isRaw ? known : undefined;
  }

  private add(launchKey: string, key: string): SeenLaunch {
    const ordinal = this.ordinals.get(key) ?? 0;
    this.ordinals.set(key, ordinal + 1);
    this.count++;
    const launch = { captureId: this.captureId, ordinal, isInRawPage: false, metrics: new Set<string>() };
    this.seen.set(launchKey, launch);
    return launch;
  }
}

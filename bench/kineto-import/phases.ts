import type { Workbench } from '../../src/model/workbench.js';

/**
 * CPU seconds (all threads) per workbench call, by the start of its statement or its table; `js` is the time between calls. A scan counts
 * until its last batch, without the processing of the batches.
 */
export function measurePhases(workbench: Workbench): {
  workbench: Workbench;
  phases(atLeastShare: number): Record<string, number>;
} {
  const spent = new Map<string, number>();
  const now = () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1e6;
  };
  const startS = now();
  const add = (name: string, since: number) => spent.set(name, (spent.get(name) ?? 0) + now() - since);
  async function timed<T>(name: string, work: () => Promise<T>): Promise<T> {
    const since = now();
    try {
      return await work();
    } finally {
      add(name, since);
    }
  }
  const statementName = (sql: string) => sql.trim().replaceAll(/\s+/g, ' ').slice(0, 70);
  return {
    phases(atLeastShare) {
      const total = now() - startS;
      const known = [...spent].reduce((sum, [, seconds]) => sum + seconds, 0);
      const shown = [...spent, ['js', total - known] as const]
        .filter(([, seconds]) => seconds >= total * atLeastShare)
        .sort((a, b) => b[1] - a[1]);
      return Object.fromEntries(shown.map(([name, seconds]) => [name, Number(seconds.toFixed(2))]));
    },
    workbench: {
      ...workbench,
      run: (sql) => timed(statementName(sql), () => workbench.run(sql)),
      query: <T extends object>(sql: string) => timed(statementName(sql), () => workbench.query<T>(sql)),
      async *scan(sql) {
        const batches = workbench.scan(sql)[Symbol.asyncIterator]();
        for (;;) {
          const next = await timed(`scan ${statementName(sql)}`, () => batches.next());
          if (next.done) return;
          yield next.value;
        }
      },
      createNames: (name, texts) => timed(`names ${name}`, () => workbench.createNames(name, texts)),
      async createTable(name, columns) {
        const writer = await workbench.createTable(name, columns);
        return {
          append(values, rows) {
            const since = now();
            writer.append(values, rows);
            add(`append ${name}`, since);
          },
          close() {
            const since = now();
            writer.close();
            add(`append ${name}`, since);
          },
        };
      },
      save: (table, captureId, select, constants) =>
        timed(`save ${table}`, () => workbench.save(table, captureId, select, constants)),
      async saveColumns(table, captureId, columns, constants) {
        const writer = await workbench.saveColumns(table, captureId, columns, constants);
        return {
          append: (values, count) => timed(`save ${table}`, () => writer.append(values, count)),
          close: () => timed(`save ${table}`, () => writer.close()),
        };
      },
    },
  };
}

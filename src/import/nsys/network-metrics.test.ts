import Database from 'libsql';
import { copyFileSync, cpSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createSession } from '../../session/create.js';
import { openDatabase, quote } from '../../session/database.js';
import { homeFolders } from '../../session/home.js';
import { openSession } from '../../session/open.js';
import { summary } from '../../session/test-session.js';
import { nsysParquetdirImporter, nsysSqliteImporter } from './importers.js';

const folder = mkdtempSync(join(tmpdir(), 'inferscope-network-test-'));
const home = homeFolders({ INFERSCOPE_HOME: folder });
const fixtures = 'test/fixtures/nsys-2025.3.1-h200';

/** Layout: "Export SQLite schema" of NVIDIA's User Guide for Nsight Systems; no report with such tables was at hand. */
const tables: Record<string, [columns: string, rows: (string | number | null)[][]]> = {
  TARGET_INFO_GPU_METRICS: [
    'typeId BIGINT, sourceId BIGINT, typeName TEXT, metricId BIGINT, metricName TEXT',
    [1, 2].flatMap((gpu) =>
      [
        'SMs Active [Throughput %]',
        'NVLink TX Requests User Data [Throughput %]',
        'NVLink TX Requests Protocol Data [Throughput %]',
        'NVLink RX Responses User Data [Throughput %]',
      ].map((name, metric) => [256 + gpu, 1, 'GPU Metrics [GH100]', metric, name]),
    ),
  ],
  GPU_METRICS: [
    'rawTimestamp BIGINT, timestamp BIGINT, typeId BIGINT, metricId BIGINT, value BIGINT',
    // Two samples in the first millisecond, one in the third.
    [0, 500_000, 2_000_000].flatMap((time, sample) =>
      [1, 2].flatMap((gpu) =>
        [90, 20 + 10 * sample, 4, gpu].map((value, metric) => [time, time, 256 + gpu, metric, value]),
      ),
    ),
  ],
  TARGET_INFO_NETWORK_METRICS: [
    'metricsListId BIGINT, metricsIdx BIGINT, name TEXT, description TEXT, unit TEXT',
    [
      [1, 0, 'IB: Bytes sent', 'Amount of InfiniBand bytes sent', 'bytes/ms'],
      [1, 1, 'IB: Bytes received', 'Amount of InfiniBand bytes received', 'bytes/ms'],
      [1, 2, 'IB: Send waits', 'Ticks with data to transmit', 'ticks/ms'],
    ],
  ],
  TARGET_INFO_NIC_INFO: [
    'globalId BIGINT, stateName TEXT, nicId BIGINT, name TEXT, deviceId BIGINT, vendorId BIGINT, linkLayer BIGINT',
    [
      [1, 'Local (CLI)', 0, 'mlx5_0', 0x1021, 0x15b3, 2],
      [1, 'Local (CLI)', 1, 'mlx5_1', 0x1021, 0x15b3, 2],
    ],
  ],
  NIC_ID_MAP: [
    'nicId BIGINT, globalId BIGINT',
    [
      [1, 7],
      [0, 6],
    ],
  ],
  NET_NIC_METRIC: [
    'start BIGINT, "end" BIGINT, globalId BIGINT, portId BIGINT, metricsListId BIGINT, metricsIdx BIGINT, value BIGINT',
    [
      [0, 1_000_000, 7, 0, 1, 0, 40_000_000],
      [0, 1_000_000, 7, 0, 1, 1, 10_000_000],
      [0, 1_000_000, 7, 0, 1, 2, 123],
      // A sample without a value is no traffic of 0 bytes.
      [0, 1_000_000, 7, 0, 1, 0, null],
      [2_000_000, 3_000_000, 7, 0, 1, 0, null],
      [1_000_000, 2_000_000, 6, 1, 1, 0, 2_000_000],
    ],
  ],
};
const literal = (value: string | number | null) => (typeof value === 'string' ? quote(value) : String(value));
const inserts = Object.entries(tables).flatMap(([name, [columns, rows]]) => [
  `CREATE TABLE ${name} (${columns})`,
  `INSERT INTO ${name} VALUES ${rows.map((row) => `(${row.map(literal).join(', ')})`).join(', ')}`,
]);

async function telemetryOf(path: string) {
  const session = await createSession({ kind: 'import', label: 'nsys', home });
  const importer = path.endsWith('.sqlite') ? nsysSqliteImporter : nsysParquetdirImporter;
  const context = { execution_id: 'profiled', capture_id: 'nsys', host: 'h' };
  await importer.load(path, session, { ...context, zero: { realtime_ns: null, monotonic_ns: null } });
  const { hardware } = await importer.facts(path, session.workbench);
  const { id } = await session.finish(summary);
  const database = await (await openSession(id, home)).connect();
  const rows = await database.query<{ scope: string; metric: string; t_ns: number; value: number }>(
    'SELECT scope, metric, t_ns, value FROM telemetry ORDER BY ALL',
  );
  await database.close();
  return { hardware, rows: rows.map(({ scope, metric, t_ns, value }) => [scope, metric, t_ns, value]) };
}

test('reads the telemetry of GPU links and network ports from SQLite and Parquet', async () => {
  const sqlite = join(folder, 'links.sqlite');
  copyFileSync(`${fixtures}/tiny-nsys.sqlite`, sqlite);
  const file = new Database(sqlite);
  for (const sql of inserts) file.exec(sql);
  file.close();
  const parquet = join(folder, 'links.parquetdir');
  cpSync(`${fixtures}/tiny-nsys.parquetdir`, parquet, { recursive: true });
  const { connection, close } = await openDatabase();
  for (const sql of inserts) await connection.run(sql);
  for (const name of Object.keys(tables))
    await connection.run(`COPY ${name} TO ${quote(join(parquet, `${name}.parquet`))} (FORMAT parquet)`);
  await close();

  const telemetry = await telemetryOf(sqlite);
  expect(telemetry.rows).toEqual([
    // User data and protocol: (20 + 30) / 2 + 4, and 40 + 4 %.
    ['gpu1', 'nvlink_rx_percent', 0, 1],
    ['gpu1', 'nvlink_rx_percent', 2_000_000, 1],
    ['gpu1', 'nvlink_tx_percent', 0, 29],
    ['gpu1', 'nvlink_tx_percent', 2_000_000, 44],
    ['gpu2', 'nvlink_rx_percent', 0, 2],
    ['gpu2', 'nvlink_rx_percent', 2_000_000, 2],
    ['gpu2', 'nvlink_tx_percent', 0, 29],
    ['gpu2', 'nvlink_tx_percent', 2_000_000, 44],
    // 2 and 40 MB per ms.
    ['mlx5_0 port 1', 'network_tx_mb_per_s', 1_000_000, 2000],
    ['mlx5_1', 'network_rx_mb_per_s', 0, 10_000],
    ['mlx5_1', 'network_tx_mb_per_s', 0, 40_000],
  ]);
  expect(telemetry.hardware['network_adapters']).toBe('15b3:1021 15b3:1021');
  expect(await telemetryOf(parquet)).toEqual(telemetry);
});

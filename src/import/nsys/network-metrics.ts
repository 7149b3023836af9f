import type { ImportContext } from '../importer.js';
import type { TableSink } from '../../model/tables.js';
import type { ReadTable } from './facts.js';
import type { SqliteValue } from './sqlite-record.js';

/**
 * Means of a table's samples per time bin of `binNs`, in any order; `key` has the values of the key columns, as "7 0".
 */
export type ReadMeans = (
  table: string,
  columns: { time: string; keys: readonly string[]; value: string },
  binNs: number,
) => Promise<{ time: number; key: string; mean: number }[]>;

/** By default nsys samples each metric of a GPU every 0.1 ms. */
const binNs = 1_000_000;

/** inferscope's names for the metrics, which are shares of the link's peak including protocol. TX leaves the GPU. */
const linkMetrics: readonly [name: RegExp, metric: string][] = [
  [/^NVLink TX .*\[Throughput %\]$/, 'nvlink_tx_percent'],
  [/^NVLink RX .*\[Throughput %\]$/, 'nvlink_rx_percent'],
  [/^PCIe TX Throughput\b/, 'pcie_tx_percent'],
  [/^PCIe RX Throughput\b/, 'pcie_rx_percent'],
];
const portMetrics: readonly [name: RegExp, metric: string][] = [
  [/^(IB|Eth): Bytes sent$/, 'network_tx_mb_per_s'],
  [/^(IB|Eth): Bytes received$/, 'network_rx_mb_per_s'],
];
type AddValue = (time: number, scope: string, metric: string, value: number) => void;

const metricOf = (metrics: readonly [RegExp, string][], name: SqliteValue | undefined) =>
  metrics.find(([pattern]) => pattern.test(String(name)))?.[1];

/**
 * Telemetry of links from reports that have it (--gpu-metrics-devices: NVLink and PCIe; --nic-metrics: ports of network
 * adapters). Tables as in "Export SQLite schema" of NVIDIA's User Guide.
 * @param offset_ns added to all times
 */
export async function saveNetworkMetrics(
  read: ReadTable,
  readMeans: ReadMeans,
  sink: Pick<TableSink, 'append'>,
  { execution_id, capture_id, host }: Pick<ImportContext, 'execution_id' | 'capture_id' | 'host'>,
  offset_ns: number,
): Promise<void> {
  const keys = { execution_id, capture_id, host, rank: null };
  const sums = new Map<string, { t_ns: number; scope: string; metric: string; value: number }>();
  const add: AddValue = (time, scope, metric, value) => {
    const key = `${time} ${scope} ${metric}`;
    const sum = sums.get(key) ?? { t_ns: time + offset_ns, scope, metric, value: 0 };
    sum.value += value;
    sums.set(key, sum);
  };
  await addLinkMetrics(read, readMeans, add);
  await addPortMetrics(read, readMeans, add);
  for (const row of sums.values()) sink.append('telemetry', { ...keys, ...row });
}

/** NVLink and PCIe of GPUs. */
async function addLinkMetrics(read: ReadTable, readMeans: ReadMeans, add: AddValue): Promise<void> {
  const links = new Map<string, string>(
    (await read('TARGET_INFO_GPU_METRICS', ['typeId', 'metricId', 'metricName'])).flatMap(
      ([type, metric, name]) => {
        const metricName = metricOf(linkMetrics, name);
        return metricName === undefined ? [] : [[`${type} ${metric}`, metricName] as const];
      },
    ),
  );
  if (links.size === 0) return;
  for (const { time, key, mean } of await readMeans(
    'GPU_METRICS',
    { time: 'timestamp', keys: ['typeId', 'metricId'], value: 'value' },
    binNs,
  )) {
    const linkMetric = links.get(key);
    // The last byte of a type is the GPU.
    if (linkMetric !== undefined) add(time, `gpu${BigInt(key.split(' ')[0]!) & 0xffn}`, linkMetric, mean);
  }
}

/** Ports of network adapters. */
async function addPortMetrics(read: ReadTable, readMeans: ReadMeans, add: AddValue): Promise<void> {
  const ports = new Map<string, string>(
    (await read('TARGET_INFO_NETWORK_METRICS', ['metricsListId', 'metricsIdx', 'name', 'unit'])).flatMap(
      ([list, index, name, unit]) => {
        const metricName = metricOf(portMetrics, name);
        return metricName === undefined || unit !== 'bytes/ms'
          ? []
          : [[`${list} ${index}`, metricName] as const];
      },
    ),
  );
  if (ports.size === 0) return;
  const names = new Map(
    (await read('TARGET_INFO_NIC_INFO', ['nicId', 'name'])).map(([id, name]) => [Number(id), String(name)]),
  );
  const adapters = new Map(
    (await read('NIC_ID_MAP', ['globalId', 'nicId'])).map(([global, id]) => [
      String(global),
      names.get(Number(id)),
    ]),
  );
  for (const { time, key, mean } of await readMeans(
    'NET_NIC_METRIC',
    { time: 'start', keys: ['globalId', 'portId', 'metricsListId', 'metricsIdx'], value: 'value' },
    binNs,
  )) {
    const [global, port, list, index] = key.split(' ');
    const portMetric = ports.get(`${list} ${index}`);
    const name = adapters.get(global!) ?? `network adapter ${global}`;
    if (portMetric !== undefined)
      add(time, `${name}${port === '0' ? '' : ` port ${port}`}`, portMetric, mean / 1000);
  }
}

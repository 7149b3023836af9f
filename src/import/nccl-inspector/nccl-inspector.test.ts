import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import type { Issue } from '../../model/document.js';
import type { Row } from '../../model/tables.js';
import { testFolder } from '../../session/test-folder.js';
import { identify } from '../identify.js';
import { ncclInspectorImporter } from './importer.js';

const folder = testFolder();
const fixture = 'test/fixtures/nccl-inspector-from-docs';
const rank3 = join(fixture, 'node-a-pid4103.log');
let files = 0;
const writeLog = (text: string | Buffer): string => {
  const path = join(folder, `log-${files++}`);
  writeFileSync(path, text);
  return path;
};

async function load(path: string): Promise<{ rows: Row<'collectives'>[]; issues: [string, number][] }> {
  const rows: Row<'collectives'>[] = [];
  const append = (_table: string, row: Row<'collectives'>) => void rows.push(row);
  const { realtime_zero_ns: realtime_ns } = await ncclInspectorImporter.facts(path);
  const { issues } = await ncclInspectorImporter.load(
    path,
    { sink: { append: append as never } },
    { execution_id: 'e', capture_id: 'c', host: 'h', zero: { realtime_ns, monotonic_ns: null } },
  );
  return { rows, issues: issues.map(({ code, count }: Issue) => [code, count ?? 0]) };
}

/**
 * The record in NCCL's README (plugins/profiler/inspector/README.md, "Output Example Verbose"), without event traces.
 */
const publishedRecord = {
  header: { id: '0xe62dedaa97644a', rank: 4, n_ranks: 8, nnodes: 1 },
  metadata: {
    inspector_output_format_version: 'v4.0',
    git_rev: '9019a1912-dirty',
    rec_mechanism: 'nccl_profiler_interface',
    dump_timestamp_us: 1752867229276385,
    hostname: 'example-hostname',
    pid: 438776,
  },
  coll_perf: {
    coll: 'ReduceScatter',
    coll_sn: 1231,
    coll_msg_size_bytes: 2147483648,
    coll_exec_time_us: 41057,
    coll_timing_source: 'kernel_gpu',
    coll_algobw_gbs: 418.439467,
    coll_busbw_gbs: 366.134533,
    event_trace_ts: {
      coll_start_ts: 1752867229235059,
      coll_stop_ts: 1752867229235064,
      kernel_events: [{ channel_id: 0, kernel_start_ts: 1752867229235181, kernel_stop_ts: 1752867229275811 }],
    },
  },
};
const line = JSON.stringify(publishedRecord);
const changeRecord = (change: (record: typeof publishedRecord) => void): string => {
  const record = structuredClone(publishedRecord);
  change(record);
  return JSON.stringify(record);
};

test("the published record: every field, on the session's clock", async () => {
  const { rows, issues } = await load(writeLog(`${line}\n`));
  expect(issues).toEqual([]);
  expect(rows).toEqual([
    {
      execution_id: 'e',
      capture_id: 'c',
      host: 'example-hostname',
      pid: 438776,
      rank: 4,
      communicator: '0xe62dedaa97644a',
      communicator_name: null,
      ranks: 8,
      nodes: 1,
      operation: 'ReduceScatter',
      sequence: 1231,
      peer: null,
      bytes: 2147483648,
      dur_ns: 41_057_000,
      timed_by: 'kernel_gpu',
      algorithm_bytes_per_s: 418.439467e9,
      bus_bytes_per_s: 366.134533e9,
      // The session starts with its kernel; the record was written 41.204 ms later.
      start_ns: 0,
      written_ns: 41_204_000,
    },
  ]);
});

test('a folder: every rank, sends and receives with their peer, unrelated files', async () => {
  expect((await identify(fixture)).name).toBe('nccl-inspector');
  expect((await identify(rank3)).name).toBe('nccl-inspector');
  const { rows, issues } = await load(fixture);
  expect(issues).toEqual([['files_left_out', 1]]);
  expect(rows).toHaveLength(158);
  const counts = [0, 1, 2, 3].map((rank) => rows.filter((row) => row.rank === rank).length);
  expect(counts).toEqual([42, 42, 37, 37]);
  expect(rows.filter(({ operation }) => operation === 'Send').map(({ rank, peer }) => [rank, peer])).toEqual(
    Array.from({ length: 5 }, () => [0, 1]),
  );
  expect(new Set(rows.map(({ communicator_name: name }) => name))).toEqual(new Set(['tp']));
});

test('reads gzip, and rejects a truncated gzip file', async () => {
  const path = writeLog(gzipSync(readFileSync(rank3)));
  expect((await identify(path)).name).toBe('nccl-inspector');
  expect((await load(path)).rows).toHaveLength(37);
  const cut = writeLog(gzipSync(readFileSync(rank3)).subarray(0, 400));
  await expect(load(cut)).rejects.toMatchObject({ code: 'E_TRACE_FILE' });
});

test.each<[string, string, [string, number][]]>([
  ['the last record cut off', `${line}\n${line.slice(0, 200)}`, [['collectives_cut_off', 1]]],
  ['a log concatenated twice', `${line}\n${line}\n${line}\n`, [['collectives_repeated', 2]]],
  [
    'another text in the middle',
    `${line}\nhello\n\n[1,2]\n${changeRecord(({ coll_perf: perf }) => (perf.coll_sn = 1232))}\n`,
    [['collectives_unreadable', 2]],
  ],
  ['a line of 2 MB', `${line}\n{"header":"${'x'.repeat(2 ** 21)}"}\n`, [['collectives_unreadable', 1]]],
  [
    'no time, no bandwidth',
    `${changeRecord(({ coll_perf: perf }) => {
      perf.coll_exec_time_us = 0;
      perf.coll_busbw_gbs = 0;
      perf.coll_algobw_gbs = 'nan' as never;
    })}\n`,
    [['collectives_untimed', 1]],
  ],
  [
    'impossible values',
    [
      line,
      changeRecord(({ header }) => (header.rank = 8)),
      changeRecord(({ header }) => (header.n_ranks = 0)),
      changeRecord(({ coll_perf: perf }) => (perf.coll_exec_time_us = -1)),
      changeRecord(({ coll_perf: perf }) => (perf.coll_msg_size_bytes = 1.5)),
      changeRecord(({ coll_perf: perf }) => (perf.coll_sn = 2 ** 60)),
      changeRecord(({ coll_perf: perf }) => (perf.coll_busbw_gbs = 1e300)),
      changeRecord(({ coll_perf: perf }) => (perf.coll = '<script>')),
      changeRecord(({ metadata }) => (metadata.dump_timestamp_us = 1e30)),
      '',
    ].join('\n'),
    [['collectives_impossible', 8]],
  ],
  [
    'a newer version',
    `${changeRecord(({ metadata }) => (metadata.inspector_output_format_version = 'v5.0'))}\n`,
    [['collectives_version', 1]],
  ],
])('reads and reports: %s', async (_what, text, issues) => {
  const loaded = await load(writeLog(text));
  expect(loaded.issues).toEqual(issues);
  expect(loaded.rows.length).toBeGreaterThan(0);
});

test('a file without a record, or with a record without an operation, is an error', async () => {
  for (const text of [
    line.slice(0, 300),
    JSON.stringify({ ...publishedRecord, coll_perf: undefined }),
    '{"header":{}}',
  ])
    await expect(load(writeLog(text))).rejects.toMatchObject({ code: 'E_TRACE_FILE' });
});

test('names a process without output; a time of 0 means unknown', async () => {
  const path = join(folder, 'logs');
  mkdirSync(path);
  cpSync(rank3, join(path, 'node-a-pid4103.log'));
  writeFileSync(join(path, 'node-b-pid7.log'), '');
  expect((await load(path)).issues).toEqual([['collectives_empty_log', 1]]);
  const undated = changeRecord(({ metadata, coll_perf: perf }) => {
    metadata.dump_timestamp_us = 0;
    delete (perf as Partial<typeof perf>).event_trace_ts;
  });
  expect((await load(writeLog(undated))).rows).toMatchObject([{ written_ns: null, start_ns: null }]);
});

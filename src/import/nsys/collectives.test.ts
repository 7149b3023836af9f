import { expect, test } from 'vitest';
import { createStaging } from '../../session/staging.js';
import { testFolder } from '../../session/test-folder.js';
import { saveCollectiveCalls } from './collectives.js';

/** Names of NCCL's ranges; a StringIds id is the index. */
const names = ['ncclGroupStart', 'ncclGroupEnd', 'ncclSend', 'ncclRecv', 'ncclAlltoAll', 'ncclCommInitRank'];

interface TestEvent {
  name: string;
  bytes?: number;
  peer?: number;
  ranks?: number;
}

const callsOf = (events: readonly TestEvent[]) =>
  readCalls(events, 'operation, peer, bytes, received_bytes, start_ns, sequence');

/** Saves the calls of a thread that makes one event per 10 ns. */
async function readCalls(events: readonly TestEvent[], columns: string) {
  const folder = testFolder();
  const staging = await createStaging({ folder, spillFolder: folder });
  const json = ({ bytes, peer, ranks }: TestEvent) => {
    const fields = {
      'NCCL communicator ID': 7,
      'No. of ranks': ranks,
      'Message size [bytes]': bytes,
      'Peer rank': peer,
    };
    return JSON.stringify(fields);
  };
  await saveCollectiveCalls(
    async (table) =>
      table === 'StringIds'
        ? names.map((name, id) => [id, name])
        : events.map((event, index) => [
            10 * index,
            10 * index + 5,
            5 << 24,
            59,
            names.indexOf(event.name),
            json(event),
          ]),
    staging.workbench,
    { capture_id: 'nsys' },
    0,
  );
  const rows = await staging.workbench.query<Record<string, unknown>>(
    `SELECT ${columns} FROM recorded_calls ORDER BY start_ns, operation, peer`,
  );
  await staging.close();
  return rows;
}

const start = { name: 'ncclGroupStart' };
const end = { name: 'ncclGroupEnd' };
const send = (peer: number, bytes: number) => ({ name: 'ncclSend', peer, bytes });
const receive = (peer: number, bytes: number) => ({ name: 'ncclRecv', peer, bytes });

test('a group that sends to all ranks and receives from all ranks is one all-to-all with both sizes', async () => {
  const rows = await callsOf([
    start,
    send(0, 100),
    receive(0, 100),
    send(1, 300),
    receive(1, 50),
    send(1, 1),
    end,
    { name: 'ncclAlltoAll', bytes: 64 },
  ]);
  expect(rows).toEqual([
    { operation: 'AllToAll', peer: null, bytes: 401, received_bytes: 150, start_ns: 60, sequence: 0 },
    // NCCL's own call: the size for one rank.
    { operation: 'AllToAll', peer: null, bytes: 64, received_bytes: null, start_ns: 70, sequence: 1 },
  ]);
});

test('an exchange with neighbors stays sends and receives', async () => {
  const sent = { operation: 'Send', received_bytes: 0, start_ns: 30, sequence: 0 };
  const received = { operation: 'Recv', start_ns: 30, sequence: 0 };
  expect(await callsOf([start, send(1, 8), receive(1, 8), end])).toEqual([
    { ...received, peer: 1, bytes: 8, received_bytes: 8 },
    { ...sent, peer: 1, bytes: 8 },
  ]);
  expect(await callsOf([start, send(2, 8), receive(0, 8), end])).toEqual([
    { ...received, peer: 0, bytes: 8, received_bytes: 8 },
    { ...sent, peer: 2, bytes: 8 },
  ]);
});

test('a thread that drives several devices: a group within the group for each, with a receive for each send', async () => {
  const rowsOf = async (events: readonly TestEvent[]) =>
    (await readCalls(events, 'operation, peer, device_place, repeats')).map((row) => [
      row['operation'],
      row['peer'],
      row['device_place'],
      row['repeats'],
    ]);
  const ofDevice = (...events: TestEvent[]) => [start, ...events, end];
  expect(
    await rowsOf([
      start,
      ...ofDevice(send(1, 8), receive(1, 8)),
      ...ofDevice(send(0, 8), receive(0, 8)),
      end,
    ]),
  ).toEqual([
    ['Recv', 0, 1, 2],
    ['Recv', 1, 0, 2],
    ['Send', 0, 1, 2],
    ['Send', 1, 0, 2],
  ]);
  // Ranks 2 and 3 of a ring of four.
  expect(
    await rowsOf([
      start,
      ...ofDevice(send(3, 8), receive(1, 8)),
      ...ofDevice(send(0, 8), receive(2, 8)),
      end,
    ]),
  ).toEqual([
    ['Recv', 1, 0, 2],
    ['Recv', 2, 1, 2],
    ['Send', 0, 1, 2],
    ['Send', 3, 0, 2],
  ]);
  const exchange = [send(0, 8), receive(0, 8), send(1, 8), receive(1, 8)];
  expect(await rowsOf([start, ...ofDevice(...exchange), ...ofDevice(...exchange), end])).toEqual([
    ['AllToAll', null, null, 2],
  ]);
  // The group of one device within another one.
  expect(await rowsOf([start, ...ofDevice(send(1, 8), receive(1, 8)), end])).toEqual([
    ['Recv', 1, null, 1],
    ['Send', 1, null, 1],
  ]);
});

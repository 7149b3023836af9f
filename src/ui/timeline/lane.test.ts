import { describe, expect, test } from 'vitest';
import { Lane, lanesOf, partOf, recordsOf } from './lane.js';
import { binsPerTile, decodeRecords, encodeRecords, tileAt, type SharesRecord } from './tile-format.js';

function laneOf(...events: readonly [start: number, end: number, kind?: number, name?: number][]): Lane {
  const lane = new Lane();
  for (const [start, end, kind = 0, name = 0] of events) lane.push(start, end, kind, name);
  return lane;
}
const base = { number: 3, zero: 1000, tile: 0, level: 0, maxEvents: 256 };

describe('building lanes', () => {
  test('nested ranges go into lower lanes, in any order of input', () => {
    const lanes = lanesOf(laneOf([20, 30], [0, 100], [22, 25], [40, 60], [100, 110]));
    expect(lanes.map(({ start, length }) => [...start.subarray(0, length)])).toEqual([
      [0, 100],
      [20, 40],
      [22],
    ]);
  });
  test('events that do not overlap stay in their arrays', () => {
    const events = laneOf([0, 10], [10, 20]);
    expect(lanesOf(events)[0]).toBe(events);
    expect(lanesOf(new Lane())).toEqual([]);
  });
  test('arrays have no room for further events after lanes are built', () => {
    const nested = lanesOf(laneOf([0, 100], [20, 30], [40, 60]));
    for (const { start, length } of [...nested, ...lanesOf(laneOf([0, 10]))])
      expect(start).toHaveLength(length);
    const empty = new Lane(0);
    empty.push(1, 2, 3, 4);
    expect([empty.length, empty.start[0], empty.name[0]]).toEqual([1, 1, 4]);
  });
  test('arrays grow as events are added', () => {
    const lane = laneOf(
      ...Array.from({ length: 1000 }, (_, i) => [2 * i, 2 * i + 1, i % 7, i] as const).map(
        (event) => [...event] as [number, number, number, number],
      ),
    );
    expect([lane.length, lane.start[999], lane.class[999], lane.name[999]]).toEqual([
      1000,
      1998,
      999 % 7,
      999,
    ]);
    expect([lane.firstEndingAfter(1998), lane.firstStartingFrom(1998), lane.firstEndingAfter(1999)]).toEqual([
      999, 999, 1000,
    ]);
  });
});

describe('tiles', () => {
  test('few events are sent as they are, cut at the edges of the tile', () => {
    const [record] = recordsOf(laneOf([900, 1010, 2, 7], [1020, 9000, 1, 5]), base);
    expect(record).toEqual({
      lane: 3,
      kind: 'events',
      first: 0,
      start: Float64Array.of(-100, 20),
      end: Float64Array.of(10, 1.5 * binsPerTile),
      class: Uint8Array.of(2, 1),
      name: Uint32Array.of(7, 5),
    });
    expect(recordsOf(laneOf([0, 1000]), base)).toEqual([]);
  });

  test('many events become shares of each bin by class, counted by hand', () => {
    // Bins of 4 ns: the first ns of each is class 1, half of the third is class 2.
    const events = Array.from(
      { length: binsPerTile },
      (_, bin) =>
        [
          [1000 + 4 * bin, 1001 + 4 * bin, 1],
          [1002 + 4 * bin, 1002.5 + 4 * bin, 2],
        ] as [number, number, number][],
    ).flat();
    const [record] = recordsOf(laneOf(...events), { ...base, level: 2 }) as [SharesRecord];
    expect(record.classes.map(({ class: kind }) => kind)).toEqual([1, 2]);
    for (const { class: kind, shares } of record.classes) {
      expect(shares[0]).toBeCloseTo(kind === 1 ? 0.25 : 0.125, 6);
      expect(shares[511]).toBeCloseTo(kind === 1 ? 0.25 : 0.125, 6);
    }
  });

  test('a long event fills each bin by the part that lies in it', () => {
    const many = Array.from({ length: 300 }, (_, i) => [3000 + i, 3000.5 + i] as [number, number]);
    const [record] = recordsOf(laneOf([1001, 1006], ...many), { ...base, level: 3 }) as [SharesRecord];
    expect(record.classes[0]!.shares[0]).toBeCloseTo(5 / 8, 6);
    const [record2] = recordsOf(laneOf([1004, 1020], ...many), { ...base, level: 3 }) as [SharesRecord];
    expect([...record2.classes[0]!.shares.subarray(0, 4)]).toEqual([0.5, 1, 0.5, 0]);
  });

  test('tiles at every level contain the same total time, also those summed from the coarse level', () => {
    let seed = 7;
    const random = (): number => (seed = (seed * 48271) % 2147483647) / 2147483647;
    const events: [number, number, number][] = [];
    for (let time = 1000; events.length < 50_000;) {
      const end = time + 1 + 200 * random();
      events.push([time, end, Math.floor(3 * random())]);
      time = end + 100 * random();
    }
    const lane = laneOf(...events);
    const truth = [0, 1, 2].map((kind) =>
      events.filter((event) => event[2] === kind).reduce((sum, [start, end]) => sum + end - start, 0),
    );
    for (const level of [8, 12, 14, 16]) {
      const found = [0, 0, 0];
      for (let tile = 0; tile <= tileAt(lane.lastEnd - 1000, level); tile++) {
        const [record] = recordsOf(lane, { ...base, level, tile });
        if (record?.kind !== 'shares') continue;
        for (const { class: kind, shares } of record.classes)
          found[kind]! += shares.reduce((sum, share) => sum + share, 0) * 2 ** level;
      }
      for (const [kind, ns] of truth.entries()) expect(found[kind]! / ns, `level ${level}`).toBeCloseTo(1, 3);
    }
  });

  test('records survive encoding; a share above 0 stays above 0', () => {
    const events = recordsOf(laneOf([1001, 1002, 11, 70_000]), base)[0]!;
    const shares = new Float32Array(binsPerTile);
    shares.set([1, 0.5, 1e-9, 0]);
    const decoded = decodeRecords(
      encodeRecords([events, { lane: 9, kind: 'shares', classes: [{ class: 4, shares }] }]).buffer,
    );
    expect(decoded[0]).toEqual(events);
    const [first] = (decoded[1] as SharesRecord).classes;
    expect([first!.class, first!.shares[0], first!.shares[3]]).toEqual([4, 1, 0]);
    expect(first!.shares[1]).toBeCloseTo(0.5, 2);
    expect(first!.shares[2]).toBeGreaterThan(0);
  });

  test('a lane with windows has events inside them and shares of the wider bins elsewhere', () => {
    const events = Array.from({ length: 4096 }, (_, i) => [1000 + 4 * i, 1001 + 4 * i, 1, i] as const);
    const whole = laneOf(...events.map((event) => [...event] as [number, number, number, number]));
    const part = partOf(whole, [{ start: 1200, end: 1300 }], 1000, 8);
    expect(part.length).toBe(25);
    const records = recordsOf(part, { ...base, level: 0 });
    expect(records.map(({ kind }) => kind)).toEqual(['shares', 'events']);
    const [shares, inside] = records as [SharesRecord, { start: Float64Array; name: Uint32Array }];
    expect([inside.start[0], inside.name[0], inside.start.length]).toEqual([200, 50, 25]);
    for (const [bin, share] of shares.classes[0]!.shares.entries())
      expect(share, `bin ${bin}`).toBeCloseTo(bin >= 200 && bin < 300 ? 0 : 0.25, 6);
    // From the coarse level on both lanes give the same shares.
    const [partShares, all] = [part, whole].map(
      (lane) => recordsOf(lane, { ...base, level: 9 })[0] as SharesRecord,
    );
    for (const [bin, share] of partShares!.classes[0]!.shares.entries())
      expect(share).toBeCloseTo(all!.classes[0]!.shares[bin]!, 6);
  });
});

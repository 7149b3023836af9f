import { describe, expect, test } from 'vitest';
import { longestName } from '../trace-tables.js';
import { events, file, fill, kernel, tiny } from './test-trace.js';

describe('valid traces with wrong content', () => {
  type Event = Record<string, unknown> & { args: Record<string, unknown> };
  const changed = (change: (events: Event[]) => void, after = '') => {
    const trace = events(tiny);
    change(trace.traceEvents as Event[]);
    return file(JSON.stringify(trace) + after);
  };
  const withCategory = (list: Event[], cat: string) => list.filter((event) => event['cat'] === cat);
  const issuesOf = async (path: string) =>
    Object.fromEntries((await fill(path)).issues.map(({ code, count }) => [code, count]));

  test('counts invalid names, sizes and shapes, and text after the end', async () => {
    const path = changed((list) => {
      for (const [i, kernel] of withCategory(list, 'kernel').slice(0, 3).entries())
        kernel['name'] = [null, 42, {}][i];
      for (const copy of withCategory(list, 'gpu_memcpy').slice(0, 2)) copy.args['bytes'] = 2 ** 63;
      for (const op of withCategory(list, 'cpu_op').slice(0, 4))
        op.args['Input Dims'] = [[-1, 1e308, null], 'x', {}];
    }, '\n{"traceEvents": []}');
    expect(await issuesOf(path)).toMatchObject({
      names_missing: 3,
      copy_bytes_impossible: 2,
      // One shape, for any number of operators with it.
      shapes_impossible: 1,
      trailing_bytes: 19,
    });
    const { query } = await fill(path);
    expect(
      await query(
        "SELECT count(*)::INTEGER AS n FROM trace_kernels JOIN trace_names ON code = name WHERE text = '(no name)'",
      ),
    ).toEqual([{ n: 3 }]);
    expect(
      await query(
        "SELECT DISTINCT text FROM trace_ops JOIN trace_names ON code = input_shapes WHERE text LIKE '%null%'",
      ),
    ).toEqual([{ text: '[[null,null,null],"x",{}]' }]);
  });

  test('ignores an empty first list of events, and counts a second one with events', async () => {
    const text = JSON.stringify(events(tiny));
    const begin = '{"traceEvents":';
    const sums = 'SELECT count(*)::INTEGER AS n, min(start_ns) AS first FROM trace_kernels';
    const plain = await fill(file(text));
    const empty = await fill(file(`${begin} [ ],${text.slice(1)}`));
    expect(empty.facts).toEqual(plain.facts);
    expect(empty.issues).toEqual(plain.issues);
    expect(await empty.query(sums)).toEqual(await plain.query(sums));
    const again = await issuesOf(file(`${begin}[${kernel('')}],${text.slice(1)}`));
    expect(again).toMatchObject({ event_lists_repeated: 1 });
    await expect(fill(file(`${begin}[]}`))).rejects.toMatchObject({ code: 'E_TRACE_FILE' });
  });

  test('counts devices given as texts and impossible device properties', async () => {
    const texts = changed((list) => {
      for (const kernel of withCategory(list, 'kernel').slice(0, 5)) kernel.args['device'] = 'cuda:0';
      withCategory(list, 'kernel')[5]!.args['device'] = null;
      withCategory(list, 'kernel')[6]!.args['detail'] = 'another key';
    });
    const { query } = await fill(texts);
    const remainingSql = 'SELECT count(*)::INTEGER AS n FROM trace_kernels WHERE device <> 0';
    expect(await query(remainingSql)).toEqual([{ n: 5 }]);
    const device = { name: 'NVIDIA H200', totalGlobalMem: 150109880320, numSms: 132 };
    const described = async (deviceProperties: unknown) => {
      const trace = { ...events(tiny), deviceProperties };
      const { facts, issues } = await fill(file(JSON.stringify(trace)));
      const found = issues.find(({ code }) => code === 'device_properties_impossible');
      return [found?.count ?? 0, facts.hardware['gpu_memory_bytes'] ?? null];
    };
    expect(await described([device])).toEqual([0, 150109880320]);
    expect(await described([])).toEqual([0, null]);
    expect(await described('H200')).toEqual([1, null]);
    expect(await described([{ ...device, totalGlobalMem: -1 }, { ...device, name: 7 }, null])).toEqual([
      3,
      null,
    ]);
    expect(await described([{ ...device, numSms: 1e300 }])).toEqual([1, 150109880320]);
  });

  test('truncates names of 100,000 letters, and counts equal truncated names as one', async () => {
    const path = changed((list) => {
      for (const [i, kernel] of withCategory(list, 'kernel').slice(0, 8).entries())
        kernel['name'] = `${i % 2}${'<a::b>'.repeat(17_000)}${i}`;
    });
    const { query } = await fill(path);
    expect(
      await query(
        "SELECT count(*)::INTEGER AS n, max(length(text))::INTEGER AS letters FROM trace_names SEMI JOIN trace_kernels ON code = name WHERE text LIKE '%b><a::b>%'",
      ),
    ).toEqual([{ n: 2, letters: longestName }]);
  });

  test('a trace without any valid kernel duration is an error', async () => {
    const path = changed((list) => {
      for (const kernel of withCategory(list, 'kernel')) kernel['dur'] = -5.5;
    });
    await expect(fill(path)).rejects.toMatchObject({
      code: 'E_TRACE_FILE',
      parts: { why: expect.stringContaining('None of its 740 kernels') },
    });
  });
});

import { describe, expect, test } from 'vitest';
import { maxNameLength } from '../trace-tables.js';
import { readTrace, writeTrace, fillTables, kernelJson, tinyTrace } from './test-trace.js';

describe('valid traces with wrong content', () => {
  type Event = Record<string, unknown> & { args: Record<string, unknown> };
  const changeTrace = (change: (events: Event[]) => void, after = '') => {
    const trace = readTrace(tinyTrace);
    change(trace.traceEvents as Event[]);
    return writeTrace(JSON.stringify(trace) + after);
  };
  const withCategory = (list: Event[], cat: string) => list.filter((event) => event['cat'] === cat);
  const issuesOf = async (path: string) =>
    Object.fromEntries((await fillTables(path)).issues.map(({ code, count }) => [code, count]));

  test('counts invalid names, sizes and shapes, and text after the end', async () => {
    const path = changeTrace((list) => {
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
    const { query } = await fillTables(path);
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
    const text = JSON.stringify(readTrace(tinyTrace));
    const begin = '{"traceEvents":';
    const sums = 'SELECT count(*)::INTEGER AS n, min(start_ns) AS first FROM trace_kernels';
    const plain = await fillTables(writeTrace(text));
    const empty = await fillTables(writeTrace(`${begin} [ ],${text.slice(1)}`));
    expect(empty.facts).toEqual(plain.facts);
    expect(empty.issues).toEqual(plain.issues);
    expect(await empty.query(sums)).toEqual(await plain.query(sums));
    const again = await issuesOf(writeTrace(`${begin}[${kernelJson('')}],${text.slice(1)}`));
    expect(again).toMatchObject({ event_lists_repeated: 1 });
    await expect(fillTables(writeTrace(`${begin}[]}`))).rejects.toMatchObject({ code: 'E_TRACE_FILE' });
  });

  test('counts devices given as texts and impossible device properties', async () => {
    const texts = changeTrace((list) => {
      for (const kernel of withCategory(list, 'kernel').slice(0, 5)) kernel.args['device'] = 'cuda:0';
      withCategory(list, 'kernel')[5]!.args['device'] = null;
      withCategory(list, 'kernel')[6]!.args['detail'] = 'another key';
    });
    const { query } = await fillTables(texts);
    const remainingSql = 'SELECT count(*)::INTEGER AS n FROM trace_kernels WHERE device <> 0';
    expect(await query(remainingSql)).toEqual([{ n: 5 }]);
    const device = { name: 'NVIDIA H200', totalGlobalMem: 150109880320, numSms: 132 };
    const loadWithDevices = async (deviceProperties: unknown) => {
      const trace = { ...readTrace(tinyTrace), deviceProperties };
      const { facts, issues } = await fillTables(writeTrace(JSON.stringify(trace)));
      const issue = issues.find(({ code }) => code === 'device_properties_impossible');
      expect(facts.hardware['gpu_name']).not.toBe('');
      return [issue?.count ?? 0, facts.hardware['gpu_memory_bytes'] ?? null];
    };
    expect(await loadWithDevices([{ ...device, name: '' }])).toEqual([1, 150109880320]);
    expect(await loadWithDevices([device])).toEqual([0, 150109880320]);
    expect(await loadWithDevices([])).toEqual([0, null]);
    expect(await loadWithDevices('H200')).toEqual([1, null]);
    expect(await loadWithDevices([{ ...device, totalGlobalMem: -1 }, { ...device, name: 7 }, null])).toEqual([
      3,
      null,
    ]);
    expect(await loadWithDevices([{ ...device, numSms: 1e300 }])).toEqual([1, 150109880320]);
  });

  test('truncates names of 100,000 letters, and counts equal truncated names as one', async () => {
    const path = changeTrace((list) => {
      for (const [i, kernel] of withCategory(list, 'kernel').slice(0, 8).entries())
        kernel['name'] = `${i % 2}${'<a::b>'.repeat(17_000)}${i}`;
    });
    const { query } = await fillTables(path);
    expect(
      await query(
        "SELECT count(*)::INTEGER AS n, max(length(text))::INTEGER AS letters FROM trace_names SEMI JOIN trace_kernels ON code = name WHERE text LIKE '%b><a::b>%'",
      ),
    ).toEqual([{ n: 2, letters: maxNameLength }]);
  });

  test('a trace without any valid kernel duration is an error', async () => {
    const path = changeTrace((list) => {
      for (const kernel of withCategory(list, 'kernel')) kernel['dur'] = -5.5;
    });
    await expect(fillTables(path)).rejects.toMatchObject({
      code: 'E_TRACE_FILE',
      parts: { why: expect.stringContaining('None of its 740 kernels') },
    });
  });
});

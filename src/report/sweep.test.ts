import type { EChartsOption } from 'echarts';
import { expect, test } from 'vitest';
import { sweepCsv } from '../export/sweep-csv.js';
import { document } from '../model/document.js';
import { sweepDocumentSchema } from '../model/documents/sweep.js';
import { sweepMapChart } from './charts/sweep/map.js';
import { sweepReport } from './html/sweep/sweep.js';
import { themes } from './palette.js';
import { sweepMaps } from './sweep-maps.js';
import { doubtsOf, shownFiguresOf, shownValue } from './sweep-words.js';
import { commandText, sweepPlanText, sweepText } from './terminal/sweep.js';
import { textWidth } from './terminal/text.js';
import { hostileText } from './test-profile.js';
import { testSweep } from './test-sweep.js';

const made = document('sweep', '1.0', testSweep());

test('the document is one that sweep writes', () => {
  expect(sweepDocumentSchema.parse(made)).toEqual(made);
});

test('maps: batch against context, with what failed in its cell', () => {
  const maps = sweepMaps(made.data);
  expect(maps.map(({ figure }) => figure)).toEqual(['peak_gb', 'mean_latency_ms', 'tokens_per_second']);
  const [peak] = maps;
  expect([peak!.x.values, peak!.y.values]).toEqual([
    ['500 → 128', '1\u00a0000 → 128'],
    ['1', '16'],
  ]);
  expect(peak!.cells.map(({ x, y, value }) => [x, y, value])).toEqual([
    [0, 0, 14.5],
    [0, 1, 22],
    [1, 0, 15],
    [1, 1, null],
  ]);
  const input = { result: made.data, part: '0', theme: themes.light, width: 900 };
  const option = sweepMapChart.build(input) as EChartsOption & { series: { data: unknown[] }[] };
  expect(option.series[0]!.data).toHaveLength(4);
});

test.each([80, 100, 120])('the text keeps to %i columns, says what failed and why', (width) => {
  const text = sweepText(made, width);
  for (const line of text.split('\n')) expect(textWidth(line), line).toBeLessThanOrEqual(width);
  expect(text).toContain('3 measured, 1 failed');
  expect(text).toMatch(/ 2 +500 +16 +22\.00 GB/);
  expect(text).toContain('failed (try 2)');
  expect(text).toContain('It asked for 30 GB; the GPU has 24.');
  expect(text).toContain('run 4: gpu0 held 1 GiB more.');
});

test('keys of a config that a family does not read are a note of plan, text and page', () => {
  const text = 'tiny: Sizes may be off: the Llama family does not read num_local_experts.';
  const issues = [{ code: 'config_keys_unread', severity: 'warning' as const, text }];
  const doubtful = document('sweep', '1.0', testSweep(), issues);
  for (const shown of [sweepText(doubtful, 120), sweepPlanText(doubtful, 120, ['inferscope'])])
    expect(shown).toContain(`note: ${text}`);
  const page = sweepReport(doubtful, { clientScript: '' });
  const doubts = page.split('<section id="doubts"')[1]!.split('</section>')[0]!;
  expect(doubts).toContain('config_keys_unread');
});

test('parameters that have no room: what follows from the model is said once a model, the rest is named', () => {
  const wide = testSweep();
  const own = [
    {
      model_id: 'org/one',
      dtype: 'float16',
      tensor_parallel_size: 1,
      quantization: null,
      max_model_len: 4096,
    },
    {
      model_id: 'org/another-one-with-a-long-name',
      dtype: 'bfloat16',
      tensor_parallel_size: 8,
      quantization: 'awq',
      max_model_len: 131_072,
    },
  ];
  for (const [index, run] of wide.runs.entries()) {
    run.parameters = {
      ...run.parameters,
      ...own[index % 2]!,
      gpu_memory_utilization: index > 1 ? 0.9 : 0.85,
    };
    run.outcome = 'pending';
  }
  wide.varied = [
    'model_id',
    'input_length',
    'output_length',
    'batch_size',
    ...Object.keys(own[0]!).slice(1),
    'gpu_memory_utilization',
  ];
  const wideMade = document('sweep', '1.0', wide);
  for (const text of [sweepText(wideMade, 80), sweepPlanText(wideMade, 80, ['x']).split('\nx ')[0]!]) {
    for (const line of text.split('\n')) expect(textWidth(line), line).toBeLessThanOrEqual(80);
    const flat = text.replaceAll(/\s+/g, ' ');
    expect(flat).toContain(
      'another-one-with-a-long-name: output 128, batch 16, dtype bfloat16, TP 8, quantization awq, max model len 131072',
    );
    expect(flat).toContain('one: output 128, batch 1, dtype float16, TP 1, max model len 4096');
    expect(flat).toMatch(/gpu memory utilization(,|;| (about|peak))/);
  }
  expect(sweepText(made, 60).replaceAll(/\s+/g, ' ')).toMatch(/In the CSV and the report too: [\w ,/]+\./);
});

test('beside others on the GPU the run’s own total has a column, else the peak says it', () => {
  const both = testSweep();
  for (const { figures } of both.runs)
    for (const { values } of figures) values['total_measured_gb'] = values['peak_gb'] ?? null;
  expect(shownFiguresOf(both)).not.toContain('total_measured_gb');
  both.runs[0]!.figures[0]!.values['total_measured_gb'] = 9.5;
  expect(shownFiguresOf(both).slice(0, 2)).toEqual(['peak_gb', 'total_measured_gb']);
  expect(sweepText(document('sweep', '1.0', both), 80)).toMatch(/ 1 +500 +1 +14\.50 GB +9\.500 GB/);
});

test('a row of the CSV a run, figures under their names, an empty cell for a missing one', () => {
  const [head = '', ...rows] = sweepCsv(made.data).trimEnd().split('\n');
  const columns = head.split(',');
  expect(rows).toHaveLength(4);
  const second = Object.fromEntries(rows[1]!.split(',').map((cell, i) => [columns[i], cell]));
  expect(second).toMatchObject({
    run: '2',
    batch_size: '16',
    outcome: 'measured',
    peak_gb: '22',
    kv_cache_gb: '',
    error: '',
  });
  expect(rows[3]).toContain('E_OUT_OF_MEMORY');
});

test('the page has runs, maps, failures with their reasons, and is inert', () => {
  const page = sweepReport(made, { clientScript: '' });
  const body = page.replace(/<script type="application\/json"[^]*?<\/script>/, '');
  expect(body).not.toContain(hostileText);
  expect(body.match(/data-chart="sweep_map"/g)).toHaveLength(3);
  const failures = body.split('<section id="failures"')[1]!.split('</section>')[0]!;
  expect(failures).toContain('It asked for 30 GB; the GPU has 24.');
  expect(body).toContain('<section id="doubts"');
});

test('commands can be pasted into a shell', () => {
  expect(commandText(['node', 'a b', "it's", '{n}', '--x=1,2'])).toBe(`node 'a b' 'it'\\''s' '{n}' --x=1,2`);
  // A profile is named by the moment its run begins.
  expect(commandText(['--output', 'my results/tiny-profile_<stamp>.json'])).toBe(
    '--output "my results/tiny-profile_$(date -u +%Y%m%d-%H%M%S).json"',
  );
  expect(commandText(['$(x)_<stamp>'])).toBe("'$(x)_<stamp>'");
});

test('a table names a model without its owner', () => {
  expect(shownValue('model_id', 'Qwen/Qwen2.5-1.5B')).toBe('Qwen2.5-1.5B');
  expect(shownValue('model_id', '/models/tiny/config.json')).toBe('tiny');
  expect(shownValue('dtype', 'a/b')).toBe('a/b');
});

test('what several runs say alike is said once', () => {
  const issue = (code: string, text: string) => ({ code, severity: 'warning' as const, text });
  const runs = [
    { number: 1, issues: [issue('machine_not_idle', 'used 1.7 cores')] },
    { number: 2, issues: [issue('machine_not_idle', 'used 1.4 cores'), issue('gpu_shared', 'gpu0')] },
    { number: 3, issues: [issue('gpu_shared', 'gpu0')] },
  ];
  expect(doubtsOf(runs)).toEqual([
    { numbers: [1, 2], text: 'used 1.7 cores (the others alike)' },
    { numbers: [2, 3], text: 'gpu0' },
  ]);
});

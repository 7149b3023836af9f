import type { IssueCode } from '../model/issue-codes.js';
import { expect, test } from 'vitest';
import { sweepCsv } from '../export/sweep-csv.js';
import { type Issue, document, type Document } from '../model/document.js';
import { sweepDocumentSchema, type SweepResult } from '../model/documents/sweep.js';
import { pageOfView } from '../render/html/view.js';
import { terminalView } from '../render/terminal/view.js';
import { textWidth } from '../render/terminal/text.js';
import { hostileText } from './test-profile.js';
import { testSweep } from './test-sweep.js';
import { parameterValue, shownFiguresOf } from './sweep-columns.js';
import { mapChart, sweepMaps } from './sweep-maps.js';
import { commandText, sweepPlanView } from './sweep-plan.js';
import { sweepView } from './sweep.js';

const sweepText = (shownView: Document<SweepResult>, width: number) =>
  terminalView(sweepView(shownView), { width });
const planText = (shownView: Document<SweepResult>, width: number) =>
  terminalView(sweepPlanView(shownView, ['inferscope']), { width });
const sweepDocument = document('sweep', '1.0', testSweep());

test('the test document is a valid sweep document', () => {
  expect(sweepDocumentSchema.parse(sweepDocument)).toEqual(sweepDocument);
});

test('maps show batch against context, with failures in their cells', () => {
  const maps = sweepMaps(sweepDocument.data);
  expect(maps.map(({ figure }) => figure)).toEqual(['peak_gb', 'mean_latency_ms', 'tokens_per_second']);
  const [peak] = maps;
  expect([peak!.x.values, peak!.y.values]).toEqual([
    ['500 in + 128 out', '1000 in + 128 out'],
    ['1', '16'],
  ]);
  expect(peak!.cells.map(({ x, y, value }) => [x, y, value])).toEqual([
    [0, 0, 14.5],
    [0, 1, 22],
    [1, 0, 15],
    [1, 1, null],
  ]);
  // The largest value is the darkest; a failure has no shade.
  expect(mapChart(sweepMaps(sweepDocument.data)[0]!).cells.map(({ shade }) => shade)).toEqual([
    0,
    1,
    0.5 / 7.5,
    null,
  ]);
});

test.each([80, 100, 120])('the text fits %i columns and shows failures with their reasons', (width) => {
  const text = sweepText(sweepDocument, width);
  for (const line of text.split('\n')) expect(textWidth(line), line).toBeLessThanOrEqual(width);
  expect(text).toMatch(/3 measured, 1 failed; 4\S* \S+ of runs/);
  expect(text).toContain('all: model llama-2-7b, output 128');
  expect(text).toMatch(/ 2 +500 +16 +22\.00 GB/);
  expect(text).toContain('failed (try 2)');
  expect(text.replaceAll(/\s+/g, ' ')).toContain('It asked for 30 GB; the GPU has 24.');
  expect(text).toContain('run 4: gpu0 held 1 GiB more.');
});

test('a run that failed has no session for that reason', () => {
  const sweep = testSweep();
  for (const run of sweep.runs) if (run.outcome !== 'measured') run.session_id = null;
  const table = sweepView(document('sweep', '1.0', sweep)).sections[0]!.blocks.find(
    (block) => block.type === 'table',
  )!;
  const sessions = table.rows.map(
    ({ cells }) => cells[table.columns.findIndex(({ id }) => id === 'session')],
  );
  expect(sessions.filter((cell) => typeof cell === 'object' && 'missing' in cell)).toEqual([
    { missing: 'no result (failed)' },
  ]);
});

test('a sweep without any session has no column for them', () => {
  const sweep = testSweep();
  for (const run of sweep.runs) run.session_id = null;
  const text = sweepText(document('sweep', '1.0', sweep), 120);
  expect(text).not.toContain('session');
});

test('a failure that stopped the sweep is a failure, stated once', () => {
  const sweep = testSweep();
  const failed = sweep.runs.find(({ failure }) => failure !== null)!;
  const runs = sweep.runs.map((run) =>
    run === failed ? { ...run, outcome: 'not_run' as const, duration_s: null } : run,
  );
  const stopped = document('sweep', '1.0', { ...sweep, status: 'interrupted' as const, runs });
  const oneLine = (text: string) => text.replaceAll(/\s+/g, ' ');
  const whole = oneLine(terminalView(sweepView(stopped), { width: 120 }));
  expect(whole).toContain('Once the failure is fixed: inferscope sweep --resume');
  expect(whole).not.toContain('interrupted');
  const reported = oneLine(terminalView(sweepView(stopped, { reported: failed.failure }), { width: 120 }));
  expect(whole).toContain(failed.failure!.why);
  expect(reported).not.toContain(failed.failure!.why);
  expect(reported).not.toContain('--resume');
});

test('a failure of several runs is shown once', () => {
  const sweep = testSweep();
  const failed = sweep.runs.find(({ failure }) => failure !== null)!;
  sweep.runs.push({ ...failed, number: failed.number + 1 });
  const text = sweepText(document('sweep', '1.0', sweep), 120);
  const failures = text.slice(text.indexOf('Failures'));
  expect(failures.split(failed.failure!.why)).toHaveLength(2);
  expect(failures).toMatch(/^ {2}\d+[–,] ?\d+ /m);
});

test('config keys that a model family ignores are a note in plan, text and page', () => {
  const text = 'tiny: Sizes may be off: the Llama family does not read num_local_experts.';
  const issues: Issue[] = [{ code: 'config_keys_unread', severity: 'warning', text }];
  const doubtful = document('sweep', '1.0', testSweep(), issues);
  for (const output of [sweepText(doubtful, 120), planText(doubtful, 120)])
    expect(output).toContain(`warning: ${text}`);
  const page = pageOfView(sweepView(doubtful), { clientScript: '' });
  const doubts = page.split('<section id="doubts"')[1]!.split('</section>')[0]!;
  expect(doubts).toContain('config_keys_unread');
});

test('a plan has time, memory, fit and command of each remaining run', () => {
  const plan = testSweep();
  for (const run of plan.runs.slice(1)) Object.assign(run, { outcome: 'pending', duration_s: null });
  plan.runs[2]!.expected = {
    ...plan.runs[2]!.expected,
    memory_bytes: null,
    fits: null,
    why: 'No config.json.',
  };
  const text = planText(document('sweep', '1.0', plan), 80);
  expect(text).toContain('3 of 4 runs left, estimated time 3 min');
  expect(text).toMatch(/^ +2 +500 +16 +50 s +22\.0 GB +24\.0 GB +fits$/m);
  expect(text).toMatch(/^ +4 .* does not fit$/m);
  expect(text).toContain('Does not fit: run 4. inferscope estimate');
  expect(text).toContain('– needs, fit: No config.json.');
  expect(text).toMatch(/^ +inferscope memory --model llama-2-7b --batch-size 16$/m);
});

test('a plan of one run has its parameters in a line above the table', () => {
  const plan = testSweep();
  plan.runs = [{ ...plan.runs[0]!, outcome: 'pending', duration_s: null }];
  plan.varied = [];
  plan.runs[0]!.expected.seconds = 144;
  const text = planText(document('sweep', '1.0', plan), 80);
  expect(text).toMatch(/^ +all +model .*batch \d+/m);
  expect(text).toMatch(/^ +run +estimate +needs +capacity +fit$/m);
  expect(text).toContain('2.4 min');
});

test('without room, parameters that follow from the model are dropped first and named', () => {
  const wide = testSweep();
  const runs = [
    { model_id: 'org/one', dtype: 'float16', tensor_parallel_size: 1, max_model_len: 4096 },
    {
      model_id: 'org/another-with-a-long-name',
      dtype: 'bfloat16',
      tensor_parallel_size: 8,
      max_model_len: 512,
    },
  ];
  for (const [index, run] of wide.runs.entries())
    run.parameters = {
      ...run.parameters,
      ...runs[index % 2]!,
      gpu_memory_utilization: index > 1 ? 0.9 : 0.85,
    };
  for (const run of wide.runs) run.outcome = 'pending';
  wide.varied = ['input_length', 'batch_size', ...Object.keys(runs[0]!), 'gpu_memory_utilization'];
  const wideDocument = document('sweep', '1.0', wide);
  for (const text of [sweepText(wideDocument, 80), planText(wideDocument, 80)]) {
    for (const line of text.split('\n')) expect(textWidth(line), line).toBeLessThanOrEqual(80);
    expect(text.replaceAll(/\s+/g, ' ')).toMatch(/\(no room at 80 columns: .*(dtype, TP|max model len, TP)/);
  }
  expect(sweepText(wideDocument, 80)).toContain('session, took, batch, dtype, TP, max model len, tok/s');
});

test("with other processes on the GPU the run's own total has a column", () => {
  const both = testSweep();
  for (const { figures } of both.runs)
    for (const { values } of figures) values['total_measured_gb'] = values['peak_gb'] ?? null;
  expect(shownFiguresOf(both)).not.toContain('total_measured_gb');
  both.runs[0]!.figures[0]!.values['total_measured_gb'] = 9.5;
  expect(shownFiguresOf(both).slice(0, 2)).toEqual(['peak_gb', 'total_measured_gb']);
  expect(sweepText(document('sweep', '1.0', both), 80)).toMatch(/ 1 +500 +1 +14\.50 GB +9\.500 GB/);
});

test('the CSV has one row per run, figures under their names, and an empty cell for a missing one', () => {
  const [head = '', ...rows] = sweepCsv(sweepDocument.data).trimEnd().split('\n');
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

test('the page has runs, maps and failures with their reasons, and names are inert', () => {
  const page = pageOfView(sweepView(sweepDocument), { clientScript: '' });
  const body = page.replaceAll(/<script type="application\/json"[^]*?<\/script>/g, '');
  expect(body).not.toContain(hostileText);
  expect(body.match(/data-chart="heat"/g)).toHaveLength(3);
  const failures = body.split('<section id="failures"')[1]!.split('</section>')[0]!;
  expect(failures).toContain('It asked for 30\u00a0GB; the GPU has 24.');
  expect(body).toContain('<section id="doubts"');
});

test('commands can be pasted into a shell', () => {
  expect(commandText(['node', 'a b', "it's", '{n}', '--x=1,2'])).toBe(`node 'a b' 'it'\\''s' '{n}' --x=1,2`);
  // A profile is named after the time its run starts.
  expect(commandText(['--output', 'my results/tiny-profile_<stamp>.json'])).toBe(
    '--output "my results/tiny-profile_$(date -u +%Y%m%d-%H%M%S).json"',
  );
  expect(commandText(['$(x)_<stamp>'])).toBe("'$(x)_<stamp>'");
});

test('a table shows a model without its owner', () => {
  expect(parameterValue('model_id', 'Qwen/Qwen2.5-1.5B')).toBe('Qwen2.5-1.5B');
  expect(parameterValue('model_id', '/models/tiny/config.json')).toBe('tiny');
  expect(parameterValue('dtype', 'a/b')).toBe('a/b');
});

test('an issue of several runs is shown once', () => {
  const sweep = testSweep();
  const issue = (code: IssueCode, text: string): Issue => ({ code, severity: 'warning', text });
  sweep.runs[0]!.issues = [issue('machine_not_idle', 'used 1.7 cores')];
  sweep.runs[1]!.issues = [issue('machine_not_idle', 'used 1.4 cores'), issue('gpu_shared', 'gpu0')];
  sweep.runs[2]!.issues = [issue('gpu_shared', 'gpu0')];
  const text = sweepText(document('sweep', '1.0', sweep), 80);
  expect(text).toContain('runs 1–2: used 1.7 cores (and 1 similar message)');
  expect(text).toContain('runs 2–3: gpu0');
});

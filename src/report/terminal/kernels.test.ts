import { expect, test } from 'vitest';
import { figure } from '../../model/figure.js';
import { kernelRooflineChart, placed } from '../charts/kernels/roofline.js';
import { kernelMapChart } from '../charts/kernels/map.js';
import { kernelsReport } from '../html/kernels/kernels.js';
import { themes } from '../palette.js';
import { kernelResult, kernelsDocument } from '../test-kernels.js';
import { kernelsText } from './kernels.js';

const lines = (text: string) => text.split('\n');

test('operations of a GPU: time, rate, share, bound, and why one is missing, in 80 columns', () => {
  const text = kernelsText(kernelsDocument(), 80);
  expect(text).toMatch(/gemm 8×28672×4096 +98\.1 µs +0\.20 % +2\.40 TB\/s +50 % +memory/);
  expect(text).toMatch(/attention flash 8×1\/2048.* 19\.2 TFLOP\/s +– +latency/);
  expect(text).toMatch(/2 of\s+2 from a CUDA graph/);
  expect(text.replaceAll(/\s+/g, ' ')).toContain(
    'softmax bfloat16 1×2: out of memory: It needs at least 300.0 GiB',
  );
  expect(text).toContain('4.30 TB/s, bfloat16 780 TFLOP/s');
  for (const line of lines(text)) expect([...line].length).toBeLessThanOrEqual(80);
  expect(text).not.toContain('\u00a0');
});

test('a CPU: the level that holds a working set, and how the runs are spread, in 80 columns', () => {
  const level = { level: 'L3', low_bytes_per_s: 20e9, high_bytes_per_s: 40e9 };
  const { roofs } = kernelsDocument().data;
  const one = kernelResult({ roof_level: 'L3', runs: 3 });
  const text = kernelsText(kernelsDocument({ cases: [one], roofs: { ...roofs, levels: [level] } }), 80);
  expect(text).toMatch(/memory \(L3\)/);
  expect(text).toContain('L3 20.0 GB/s to 40.0 GB/s');
  expect(text).toMatch(/gemm 8×28672×4096 +3 +98\.0 µs +1\.00 µs +97\.0 µs +0\.101 ms/);
  for (const line of lines(text)) expect([...line].length).toBeLessThanOrEqual(80);
});

test('what runs behind a traced case: its kernels by time, cut to the line', () => {
  const kernel =
    'cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128_4x1x1_kernel0_0';
  const part = { class: 'gemm' as const, count: 1 };
  const behind = [
    { ...part, what: 'kernel' as const, name: kernel, ns: 52_300 },
    { ...part, what: 'kernel' as const, name: 'reduce_kernel', ns: 1500, count: 2 },
    { ...part, what: 'operator' as const, name: 'aten::mm', ns: 9000 },
  ];
  const text = kernelsText(kernelsDocument({ cases: [kernelResult({ behind })] }), 80);
  expect(text).toMatch(
    /gemm bfloat16 8×28672×4096 +cudnn_generated_\S*… +1 +52\.3 µs\n +reduce_kernel +2 +1\.50 µs/,
  );
  expect(text).not.toContain('aten::mm');
  for (const line of lines(text)) expect([...line].length).toBeLessThanOrEqual(80);
});

test('a title that would steer the terminal does not', () => {
  const session = { ...kernelsDocument().data.session, title: 'kernels \u001B]0;x\u0007 end' };
  const text = kernelsText(kernelsDocument({ session }), 80);
  for (const steering of ['\u001B', '\u0007']) expect(text).not.toContain(steering);
});

test('a step names what it lacks, its dearest operation first', () => {
  const op = { count: 32, case: null, reason: null, flops: 1, bytes: 1, total_ns: null, roof_ns: null };
  const steps = [
    {
      phase: 'decode' as const,
      batch_size: 8,
      new_tokens: 1,
      context_tokens: 2048,
      ops: [
        { ...op, name: 'rotary', total_ns: 1e5, roof_ns: 1e4 },
        { ...op, name: 'gate_up_proj', total_ns: 9e5, roof_ns: 8.1e5 },
        { ...op, name: 'router_topk', reason: 'no kernel of the suite does this' },
      ],
      measured_ns: figure(1e6, 'ns', 'Σ'),
      roof_ns: figure(8.2e5, 'ns', 'Σ'),
      measured_ops: 64,
      missing_ops: 32,
    },
  ];
  const text = kernelsText(kernelsDocument({ steps, model: { name: 'moe', dtype: 'bfloat16' } }), 80);
  expect(text).toMatch(/decode, batch 8, context 2 048 +1\.00 ms +0\.820 ms +82 % +64\/96/);
  expect(text.indexOf('gate_up_proj')).toBeLessThan(text.indexOf('rotary'));
  expect(text).toMatch(/gate_up_proj +32 +28\.1 µs +0\.900 ms +90 % +90 %/);
  expect(text).toContain('not measured: router_topk: no kernel of the suite does this');
});

test('the page has charts with their tables and escapes what it shows', () => {
  const odd = kernelResult({ case: '<b>', backend: '<script>', outcome: 'wrong', text: '<i>off</i>' });
  const html = kernelsReport(kernelsDocument({ cases: [...kernelsDocument().data.cases, odd] }), {
    clientScript: '',
  });
  for (const chart of ['kernel_roofline', 'kernel_map']) expect(html).toContain(`data-chart="${chart}"`);
  expect(html.match(/Table behind this chart/g)).toHaveLength(2);
  expect(html).toContain('wrong result: &lt;i&gt;off&lt;/i&gt;');
  expect(html).not.toContain('<i>off');
  expect(html).not.toContain('<script>off');
});

test('charts: points where intensity and rate are, a cell without a figure says why', () => {
  const { data } = kernelsDocument();
  expect(placed(data).map(({ kernel }) => kernel)).toEqual(['gemm', 'attention']);
  for (const theme of [themes.light, themes.dark]) {
    const roofline = kernelRooflineChart.build({ result: data, part: '', theme, width: 900 });
    const series = roofline.series as { type: string; data: { value: number[] }[] }[];
    expect(series.find(({ type }) => type === 'scatter')!.data.map(({ value }) => value)).toEqual([
      [7.98, 19.157e12],
      [7.98, 19.157e12],
    ]);
    // The slope ends where bandwidth meets the peak: 780e12 / 4.3e12.
    expect(series[0]!.data.at(-1)).toEqual([780 / 4.3, 780e12]);
    const map = kernelMapChart.build({ result: data, part: '0', theme, width: 900 });
    expect((map.series as { data: number[][] }[])[0]!.data).toEqual([
      [0, 0],
      [1, 1],
    ]);
  }
});

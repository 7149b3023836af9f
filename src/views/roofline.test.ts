import { expect, test } from 'vitest';
import { document } from '../model/document.js';
import { type RooflineData, rooflineDocumentSchema, rooflineVersion } from '../model/documents/roofline.js';
import { exampleGpu, exampleGpuRoofline } from '../model/documents/test-gpu-roofline.js';
import { pageOfView } from '../render/html/view.js';
import { terminalView } from '../render/terminal/view.js';
import { plainText, rawValue } from '../render/value.js';
import { hostileText } from './test-profile.js';
import { testRoofline } from './test-roofline.js';
import type { Block, Table, View } from './block.js';
import { rooflineView } from './roofline.js';

const gpuDocument = (gpu = exampleGpuRoofline()) =>
  document<RooflineData>(
    'roofline',
    rooflineVersion,
    { roofline: null, cached: false, age_s: null, gpu, gpu_cached: true, gpu_age_s: 7200 },
    [{ code: 'throttled', severity: 'info', text: 'Clocks were throttled.' }],
  );
const view = rooflineView(gpuDocument());
const cpuView = rooflineView(
  document<RooflineData>('roofline', rooflineVersion, {
    roofline: testRoofline(),
    cached: true,
    age_s: 7300,
    gpu: null,
    gpu_cached: false,
    gpu_age_s: null,
  }),
);
const isTable = (block: Block): block is Block & Table => block.type === 'table';
const section = (shownView: View, id: string) =>
  shownView.sections.find((candidate) => candidate.id === id)!.blocks;
const facts = (blocks: readonly Block[]) =>
  blocks.flatMap((block) =>
    block.type === 'facts'
      ? block.items.map(({ name, text }) => `${name}: ${plainText(text)}`.replaceAll('\u00a0', ' '))
      : [],
  );

test('a GPU shows every rate with its share of the data sheet, marked if clocks were throttled', () => {
  expect(rooflineDocumentSchema.parse(gpuDocument()).data.gpu).toEqual(exampleGpuRoofline());
  const [compute, memory] = section(view, 'cuda-0').filter(isTable);
  // 800 of 989 TFLOP/s, ridge 800 / 4.
  expect(compute!.rows[1]!.cells.map(rawValue)).toEqual([
    'bfloat16*',
    800e12,
    989e12,
    800 / 989,
    0.004,
    100,
    200,
    1755,
    612,
    'sw power cap',
    '8192³',
  ]);
  expect(memory!.rows[0]!.cells.map(rawValue).slice(0, 4)).toEqual(['copy', 3.9e12, 4.8e12, 3.9 / 4.8]);
  expect(facts(section(view, 'cuda-0'))).toEqual([
    'L2: read 8.00 TB/s (array of 16.0 MiB)',
    'launch: 2.40 µs of host time · 1.30 µs from kernel to kernel · 9.00 µs until the host sees completion',
    'graph node: 1.10 µs from kernel to kernel',
    'host link: host to device pinned 55.0 GB/s',
    'data sheet: NVIDIA H200 Tensor Core GPU data sheet (SXM) (2024)',
  ]);
});

test('a second GPU of the same name is compared with the first', () => {
  expect(facts(section(view, 'compared'))).toEqual([
    'cuda:1: NVIDIA H200, relative to cuda:0: float32 100 % · bfloat16 100 %* · copy 100 % · read 100 %',
  ]);
  const table = section(view, 'collectives').find(isTable);
  expect(table!.rows.map(({ cells }) => cells.slice(0, 2).map(rawValue))).toEqual([
    [1024, 20_000],
    [2 ** 30, 3e6],
  ]);
});

test('a GPU is not compared without a fully measured one of its name', () => {
  const other = exampleGpu({ index: 1, scope: 'compared', name: 'NVIDIA L4' });
  const mixed = rooflineView(gpuDocument(exampleGpuRoofline({ gpus: [exampleGpu(), other] })));
  expect(facts(section(mixed, 'compared'))).toEqual([
    'cuda:1: NVIDIA L4: no GPU of this name was measured in full',
  ]);
});

test('a CPU shows peaks, bandwidth by level, and the ridge point', () => {
  const [compute, bandwidth] = section(cpuView, 'cpu').filter(isTable);
  expect(compute!.rows.map(({ cells }) => cells.slice(0, 2).map(rawValue))).toEqual([
    ['float32', testRoofline().compute[0]!.flops_per_s],
    ['int8', 612e9],
  ]);
  expect(bandwidth!.rows.at(-1)!.cells.slice(0, 3).map(rawValue)).toEqual([2 ** 30, 'DRAM', 12.9e9]);
  // 208 GFLOP/s / 12.9 GB/s by hand.
  expect(facts(section(cpuView, 'cpu'))[0]).toBe('ridge point: 16.1 FLOP/byte (float32 peak over DRAM read)');
  expect(facts(cpuView.lead)[0]).toMatch(/UTC \(2 h 2 min ago\), in 6.20/);
});

test.each([
  ['GPU', view, 80],
  ['GPU', view, 120],
  ['CPU', cpuView, 80],
] as const)('the summary of a %s fits %#: %i columns', (_, shownView, width) => {
  const lines = terminalView(shownView, { width }).split('\n');
  expect(lines.filter((line) => [...line].length > width)).toEqual([]);
  expect(lines.length).toBeLessThanOrEqual(40);
});

test('names of GPUs cannot inject anything on a page, which lists the sizes tried', () => {
  const hostile = gpuDocument(exampleGpuRoofline({ gpus: [exampleGpu({ name: hostileText })] }));
  const page = pageOfView(rooflineView(hostile), { clientScript: '' });
  expect(page).not.toContain(`>${hostileText}`);
  expect(page).toContain('8192×8192×8192');
});

test('documents of version 1.0 can still be read', () => {
  const { schema, data, ...rest } = gpuDocument();
  const old = {
    ...rest,
    schema: schema.replace(rooflineVersion, '1.0'),
    data: { roofline: testRoofline(), cached: true, age_s: data.age_s },
  };
  expect(rooflineDocumentSchema.parse(old).data).toMatchObject({ gpu: null, gpu_cached: false });
});

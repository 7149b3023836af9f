import { expect, test } from 'vitest';
import type { TimedRequest } from '../facts/serving/requests-over-time.js';
import type { Section } from '../views/block.js';
import { requestSections } from './requests-page.js';

const requests = (count: number): TimedRequest[] =>
  Array.from({ length: count }, (_, id) => ({
    id: String(id),
    due_s: id / 10,
    sent_s: id / 10,
    ttft_ms: 20,
    tpot_ms: 5,
    e2e_ms: 90,
    input_tokens: 8,
    output_tokens: 15,
    status: 'ok',
    warmup: false,
  }));

const inFile = (count: number, pages = 1): { text: string; drawn: number } => {
  const sections = requestSections(requests(count), {
    execution: 'a',
    executions: ['a'],
    linkTo: null,
    nameOf: () => '4 users',
    pages,
    others: 'inferscope ui ID',
  });
  const { blocks } = sections.find(({ id }) => id === 'gantt') as Section;
  const { chart } = blocks.find((block) => block.type === 'chart')!;
  if (chart.form !== 'timeline') throw new Error(chart.form);
  // Two spans of each request: until its first token, and after it.
  return { text: JSON.stringify(blocks[0]), drawn: chart.spans.length / 2 };
};

test('a file draws all requests in flight up to its limit, and says how to see the others', () => {
  const all = inFile(900);
  expect(all.drawn).toBe(900);
  expect(all.text).not.toContain('The others');
  const part = inFile(1500);
  expect(part.drawn).toBe(1000);
  expect(part.text).toMatch(/Requests 1 to 1.000 of 1.500.*The others: inferscope ui ID/);
  // Two loads share the room of the file.
  expect(inFile(900, 2).drawn).toBe(500);
});

test('points that cover each other are drawn once, failures and the slowest among them', () => {
  const all = requests(20_000).map((request, index) => ({
    ...request,
    e2e_ms: 50 + (index % 100),
    ...(index === 7777 ? { status: 'timeout', e2e_ms: 40 } : {}),
    ...(index === 12_345 ? { e2e_ms: 900 } : {}),
  }));
  const [section] = requestSections(all, {
    execution: 'a',
    executions: ['a'],
    linkTo: () => '',
    nameOf: () => '4 users',
    others: 'inferscope sql',
  });
  expect(JSON.stringify(section)).toContain('Points that cover each other are drawn once.');
  const { chart } = section!.blocks.find((block) => block.type === 'chart')!;
  if (chart.form !== 'lines') throw new Error(chart.form);
  const latency = chart.panels.at(-1)!.series;
  const pointsOf = (name: string) => latency.find((line) => line.name === name)!.points;
  expect(pointsOf('measured').length).toBeLessThan(8000);
  expect(pointsOf('measured')).toContainEqual([1234.5, 900]);
  expect(pointsOf('failed')).toEqual([[777.7, 40]]);
  // Every request has a drawn point in its cell: 600 columns over 1,999.9 s and 60 rows up to 900 ms.
  const cell = (x: number, y: number): string =>
    `${Math.floor((x / 1999.9) * 600)} ${Math.floor((y / 900) * 60)}`;
  const drawn = new Set([...pointsOf('measured'), ...pointsOf('failed')].map(([x, y]) => cell(x, y!)));
  expect(all.filter(({ sent_s, e2e_ms }) => !drawn.has(cell(sent_s!, e2e_ms)))).toEqual([]);
});

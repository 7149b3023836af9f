import { expect, test } from 'vitest';
import type { TimedRequest } from '../facts/serving/requests-over-time.js';
import { ganttRequests, requestGantt } from './requests-gantt.js';

const request = (id: number, sent_s: number, more: Partial<TimedRequest> = {}): TimedRequest => ({
  id: String(id),
  due_s: sent_s,
  sent_s,
  ttft_ms: 100,
  tpot_ms: 10,
  e2e_ms: 1000,
  input_tokens: 8,
  output_tokens: 91,
  status: 'ok',
  warmup: false,
  ...more,
});

test('requests in flight at once get separate rows, and each takes the first free row', () => {
  const requests = [request(1, 0), request(2, 0.5), request(3, 1), request(4, 1.2, { due_s: 1.1 })];
  const { chart, before, endless } = requestGantt(requests, 0)!;
  expect(chart.lanes).toEqual(['1', '2', '3']);
  // The third request reuses the row that the first left at 1 s; the fourth was due while two others ran.
  expect(chart.spans.map(([row, start, ns]) => [row, Math.round(start / 1e6), Math.round(ns / 1e6)])).toEqual(
    [
      [0, 0, 100],
      [0, 100, 900],
      [1, 500, 100],
      [1, 600, 900],
      [0, 1000, 100],
      [0, 1100, 900],
      [2, 1100, 100],
      [2, 1200, 100],
      [2, 1300, 900],
    ],
  );
  expect(chart.key.map(({ name }) => name)).toEqual([
    'due, not sent',
    'until the first token',
    'first to last token',
  ]);
  expect([before, endless, chart.dur_ns]).toEqual([0, 0, 2.2e9]);
});

test('a later page includes requests still in flight, and counts requests without an end', () => {
  const many = Array.from({ length: ganttRequests }, (_, index) => request(index, index / 10));
  const next = ganttRequests / 10;
  const requests = [...many, request(1000, next), request(1001, next, { e2e_ms: null, status: 'timeout' })];
  const { chart, before, endless, drawn, start_s } = requestGantt(requests, ganttRequests)!;
  // One request per 100 ms, each takes 1 s: nine are unfinished.
  expect(before).toBe(9);
  expect([endless, drawn.length, start_s]).toEqual([1, 2, next]);
  expect(Math.min(...chart.spans.map(([, start]) => start))).toBeLessThan(0);
});

test('a failed request is one span, and without times nothing is drawn', () => {
  const failed = requestGantt([request(1, 0, { status: 'timeout', ttft_ms: null })], 0)!;
  expect(failed.chart.spans).toHaveLength(1);
  expect(failed.chart.key.map(({ name }) => name)).toEqual(['failed']);
  expect(requestGantt([request(1, 0, { sent_s: null })], 0)).toBeNull();
});

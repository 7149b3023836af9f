import { expect, test } from 'vitest';
import { analyzeTrace } from '../../../facts/trace/trace.js';
import { importSession } from '../../../session/archive-import.js';
import { openSession } from '../../../session/open.js';
import { testHome } from '../../../session/test-folder.js';
import { kernelLabels } from '../../../vocabulary/kernel-label.js';
import { explainSession } from '../../explain/explain.js';
import { explainArchive } from '../test-planted-faults.js';

testHome();

const folder = 'test/fixtures/diagnosis-validation';
/** Numbers with this unit in a text. */
const numbers = (text: string, pattern: RegExp): number[] =>
  [...text.matchAll(pattern)].map(([, number]) => Number(number));

test('launch-bound: the parts in its cause and in its evidence sum to what it states', async () => {
  const { findings } = await explainArchive(`${folder}/e_24_uncached-fault.tgz`);
  const { title, cause, evidence } = findings.find(({ id }) => id === 'launch_bound:decode')!;
  const [share] = numbers(title, /waits ([\d.]+) %/g);
  const [wall] = numbers(cause, /takes ([\d.]+) ms/g);
  const [launches] = numbers(cause, /([\d.]+) ms in total/g);
  const [stretches] = numbers(cause, /Another ([\d.]+) µs is longer host gaps/g);
  expect(launches! + stretches! / 1e3).toBeCloseTo((share! / 100) * wall!, 2);
  const [row] = evidence[0]!.rows;
  expect(row!['idle_ms']).toBeCloseTo(
    Number(row!['host_ms']) + Number(row!['launch_overhead_ms']) + Number(row!['launch_latency_ms']),
    2,
  );
});

test('layout copies: the evidence has the calls that the title counts', async () => {
  const { findings } = await explainArchive(`${folder}/c_15_repeated_heads_scheduler-fault.tgz`);
  const { title, cause, evidence } = findings.find(({ id }) => id === 'casts_and_layout_copies:decode')!;
  expect(title).toContain('(8 kernels)');
  expect(evidence[0]!.text).toContain('8 calls of 0.166 ms');
  expect(cause).not.toContain('another type');
});

test('host gaps: copies are named, and gaps of several places are counted together', async () => {
  const { findings } = await explainArchive('test/fixtures/vllm-tp2-h200/tp2.tgz');
  const { title, evidence } = findings.find(({ id }) => id === 'host_bound:mixed')!;
  expect(evidence[0]!.text).toMatch(/^before a memset: .*; before an H2D copy: /);
  const gaps = evidence[0]!.rows.reduce((sum, row) => sum + Number(row['per_instance']), 0);
  const [counted] = numbers(title, /in ([\d.]+) gaps/g);
  expect(counted).toBeCloseTo(gaps, 0);
});

test('kernels have one name in evidence, in the table of kernels and in answers', async () => {
  const session = await openSession(
    (await importSession('test/fixtures/diagnosis-stock-validation/sk_17_quantized-fault.tgz')).id,
  );
  const { findings } = (await explainSession(session)).data;
  const { kernels } = (await analyzeTrace(session)).data;
  const inTable = kernelLabels(kernels);
  const inEvidence = new Map(
    findings.flatMap(({ evidence }) => evidence.flatMap((part) => Object.entries(part.kernel_labels))),
  );
  expect(inEvidence.size).toBeGreaterThan(10);
  for (const [name, label] of inEvidence) expect(inTable.get(name)).toBe(label);
  expect(new Set(inTable.values()).size).toBe(inTable.size);
});

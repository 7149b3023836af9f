import { expect, test } from 'vitest';
import { plantedIn, scoreOf, sentenceOf } from '../../../bench/diagnosis/grade.js';
import { medianOf } from '../../../bench/diagnosis/median.js';
import {
  faults,
  generated,
  gradeProgram,
  inRepository,
  print,
  publish,
  allPrograms,
} from './test-planted-faults.js';

test('the 95 % interval of a median of 12 is from the 3rd to the 10th value', () => {
  const values = [7, 1, 12, 3, 5, 2, 11, 4, 9, 10, 6, 8];
  expect(medianOf(values)).toEqual({ median: 6.5, low: 3, high: 10 });
  // With five values even the whole range contains the median with only 93.75 %.
  expect(medianOf([1, 2, 3, 4, 5])).toEqual({ median: 3, low: 1, high: 5 });
});

test('each planted fault is the first finding, is absent in the fixed program, and has the expected gain', async () => {
  const [rows, notes] = await gradeProgram(faults, 'test/fixtures/diagnosis');
  const score = publish(rows, notes, 'table');
  if (!allPrograms) return;
  const text = sentenceOf(score);
  expect(rows.length).toBe(faults.length);
  expect(score.first / score.faults, text).toBeGreaterThanOrEqual(11 / 12);
  expect(score.false_alarms + (score.faults - score.free_twins), text).toBeLessThanOrEqual(1);
  expect(score.median_error, text).toBeLessThanOrEqual(0.15);
  expect(score.hidden.named).toBe(score.hidden.planted);
});

test.runIf(inRepository)('programs of former validation seeds meet the goals together', async () => {
  const graded: Awaited<ReturnType<typeof gradeProgram>>[0] = [];
  for (const [half, folder] of [
    ['earlier', 'test/fixtures/diagnosis-validation'],
    ['stock-earlier', 'test/fixtures/diagnosis-stock'],
  ] as const) {
    const programs = generated.filter((program) => program.half === half);
    const [rows, notes] = await gradeProgram(programs.map(plantedIn), folder);
    print(`${half}\n${sentenceOf(scoreOf(rows))}`, notes);
    if (allPrograms) expect(rows.length).toBe(programs.length);
    graded.push(...rows);
  }
  if (!allPrograms) return;
  const score = scoreOf(graded);
  expect(score.first / score.faults, sentenceOf(score)).toBeGreaterThanOrEqual(0.9);
  expect(score.false_alarms, sentenceOf(score)).toBe(0);
});

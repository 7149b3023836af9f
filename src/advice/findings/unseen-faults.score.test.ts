import { expect, test } from 'vitest';
import { familyOf, plantedIn } from '../../../bench/diagnosis/grade.js';
import {
  generated,
  gradeProgram,
  inRepository,
  publish,
  publishClaims,
  allPrograms,
} from './test-planted-faults.js';

test.each([
  ['combined', 'test/fixtures/diagnosis-combined', 'table of programs with two faults'],
  ['validation', 'test/fixtures/diagnosis-validation', 'table of programs not tuned on'],
  ['stock-validation', 'test/fixtures/diagnosis-stock-validation', 'table of stock programs'],
  ['stock-combined', 'test/fixtures/diagnosis-stock-combined', 'table of stock programs with two faults'],
  ['engine-validation', 'test/fixtures/diagnosis-engine', 'table of vLLM programs'],
] as const)(
  '%s programs, not used for tuning: the findings equal the table in the docs',
  async (half, folder, mark) => {
    // Other captures may be of any half.
    const programs = generated.filter((program) =>
      inRepository ? program.half === half : familyOf(program.half) === familyOf(half),
    );
    const [rows, notes] = await gradeProgram(programs.map(plantedIn), folder);
    publish(rows, notes, mark);
    if (rows.some(({ claims }) => claims.length > 0)) publishClaims(rows, `claims: ${mark}`);
    if (allPrograms) expect(rows.length).toBe(programs.length);
  },
);

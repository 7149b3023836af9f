import { stripVTControlCharacters } from 'node:util';
import { expect, test } from 'vitest';
import type { Document, Issue } from '../../model/document.js';
import { testBench } from '../../views/test-bench.js';
import { testExplain } from '../../views/test-explain.js';
import { kernelsDocument } from '../../views/test-kernels.js';
import { testMemory } from '../../views/test-memory.js';
import { testProfile } from '../../views/test-profile.js';
import { testServing } from '../../views/test-serving.js';
import { textWidth } from './text.js';
import { viewOf } from '../../views/registry.js';
import { terminalView } from './view.js';

const warnings = Array.from({ length: 5 }, (_, index): Issue => ({
  code: (['machine_not_idle', 'throttled', 'late_samples', 'sampling_cost', 'orphans'] as const)[index]!,
  severity: 'warning',
  text: `Warning ${index}: ${'the machine was busy with something else, '.repeat(4)}`,
}));
const warned = <T>(document: Document<T>): Document<T> => ({ ...document, issues: warnings });

const shown = [
  { kind: 'bench', document: warned(testBench()) },
  { kind: 'kernels', document: warned(kernelsDocument()) },
  { kind: 'memory', document: warned(testMemory()) },
  { kind: 'profile', document: warned(testProfile()) },
  { kind: 'serving', document: warned(testServing()) },
] as const;

const busy =
  'This machine was busy (other processes used 1.8 CPU cores; medians of launches lie 103 % apart): times are upper bounds; noisy causes are withheld.';

test.each(shown)(
  'a summary of $kind fits 30 lines at 80 and 120 columns, and uses their width',
  async (example) => {
    const view = await viewOf(example);
    const explain = testExplain();
    explain.data.preface.push(busy);
    explain.data.machine = { busy: true, usable_cores: 2, signs: [] };
    for (const width of [80, 120]) {
      const lines = stripVTControlCharacters(terminalView(view, { width, explain })).split('\n');
      // One line remains for the session or the report. The requested table is not shortened.
      const table = view.sections.find(({ requested: asked }) => asked);
      const end = table ? lines.indexOf(`  ${table.title}`) : lines.length;
      expect(end).toBeGreaterThan(0);
      expect(end).toBeLessThan(30);
      const widest = Math.max(...lines.map(textWidth));
      expect(widest).toBeLessThanOrEqual(width);
      expect(widest).toBeGreaterThan(width - 20);
      const text = lines.join('\n');
      // The first sentence states that the machine was busy.
      if (view.explains !== 'findings') expect(text).not.toContain('Warning 0');
      // A warning is shown completely, or counted.
      expect(text.replaceAll(/\s+/g, ' ')).toMatch(
        /Warning 1: (?:the machine was busy with something else, ){4}|\d warnings in the report/,
      );
      expect(text).not.toContain('Warning 4');
      expect(text).toMatch(/^ {2}1 {2}/m);
      expect(text).toContain('inferscope explain ');
      if (view.explains !== 'findings') expect(text).toMatch(/^ +measured +[\d.]+ ms/m);
    }
    const details = terminalView(view, { width: 80, level: 2, explain });
    expect(details).toContain('Warning 4');
    if (view.explains !== 'findings') expect(details).not.toContain('Warning 0');
  },
);

import { describe, expect, test } from 'vitest';
import { pageOfView } from '../render/html/view.js';
import { testBench } from './test-bench.js';
import { testExplain, testFinding } from './test-explain.js';
import { hostileText } from './test-profile.js';
import { benchView } from './bench.js';

const clientScript = '"use strict";';
const sections = (html: string) => [...html.matchAll(/<section id="([\w-]+)"/g)].map(([, id]) => id);

describe('a page with an explanation', () => {
  const explain = testExplain();
  const bench = pageOfView(benchView(testBench()), { clientScript, explain });

  test('starts with stages, waterfall and findings; every chart has a table behind it', () => {
    expect(sections(bench).slice(0, 4)).toEqual(['waterfall', 'findings', 'overview', 'points']);
    expect(bench.indexOf('<table class="headline"')).toBeGreaterThan(0);
    expect(bench.indexOf('<table class="headline"')).toBeLessThan(bench.indexOf('<section id="waterfall"'));
    expect(bench).toContain('data-chart="waterfall"');
    const table = bench.slice(
      bench.indexOf('<section id="waterfall"'),
      bench.indexOf('<section id="findings"'),
    );
    for (const { id } of explain.data.stages[0]!.bars)
      expect(table.replaceAll('<wbr/>', '')).toContain(`<code>${id}</code>`);
  });

  test('a finding opens to its cause, change, evidence rows and query', () => {
    const section = bench.slice(
      bench.indexOf('<section id="findings"'),
      bench.indexOf('<section id="points"'),
    );
    expect(section.match(/<li id="finding-/g)).toHaveLength(2);
    // While closed, the first finding shows its change and expected gain.
    const brief = section.slice(section.indexOf('class="brief"'), section.indexOf('</li>'));
    expect(brief).toContain('Capture the step into a CUDA graph.');
    expect(brief.replaceAll('\u00a0', ' ')).toContain('expected gain: 20.9 ms per decode step');
    for (const text of [
      'SELECT 924 AS launches',
      '0.971235',
      '20.9',
      'href="#finding-launch_bound-decode"',
    ]) {
      expect(section).toContain(text);
    }
    // The mark of the evidence is that of the query on the page; the command that prints it is for a terminal.
    expect(section.replaceAll('\u00a0', ' ')).toContain(
      '<summary>Query [sql 1] for inferscope sql</summary>',
    );
    expect(section).not.toContain('prints the query');
  });

  test('evidence rows name a kernel as the sentences do, with its full name on hover', () => {
    const name = 'void at::native::vectorized_elementwise_kernel<4, at::native::GeluFunctor<float>>(int)';
    const evidence = {
      ...testFinding().evidence[0]!,
      rows: [{ kernel: name }],
      kernel_labels: { [name]: 'elementwise gelu, float' },
    };
    const html = pageOfView(benchView(testBench()), {
      clientScript,
      explain: testExplain({ findings: [testFinding({ evidence: [evidence] })] }),
    });
    expect(html).toMatch(/<span title="void at::native[^"]*">elementwise gelu, float<\/span>/);
  });

  test('names of kernels and files stay text', () => {
    const bad = testExplain({
      sentences: [hostileText],
      findings: [testFinding({ title: hostileText, check: hostileText, cause: hostileText })],
    });
    bad.data.stages[0]!.bars[2]!.parts = [{ label: hostileText, ms: 1, count: 1 }];
    bad.data.stages[0]!.bars[0]!.label = hostileText;
    const html = pageOfView(benchView(testBench()), { clientScript, explain: bad });
    expect(html).not.toContain('<img src=x');
    expect(html.split('globalThis.pwned=1</script>')).toHaveLength(1);
    const data = /data-chart="waterfall".*?<script type="application\/json">(.*?)<\/script>/s.exec(html)![1]!;
    const { bars } = JSON.parse(data) as { bars: { meaning: string }[] };
    expect(bars[0]!.meaning).toContain(hostileText);
  });
});

// Counts how often the intervals of two equal runs overlap. See README.md in this folder.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
const cli = join(root, 'dist', 'cli.js');
const pairs = Number(process.argv[2] ?? 20);
const home = mkdtempSync(join(tmpdir(), 'inferscope-repeatability-'));
const env = { ...process.env, INFERSCOPE_HOME: home };
const metrics = ['ttft_ms', 'tpot_ms', 'e2e_ms'];
const profile = () =>
  JSON.parse(
    execFileSync(process.execPath, [cli, 'profile', '--quiet', '--json'], {
      env,
      encoding: 'utf8',
      maxBuffer: 1 << 28,
      stdio: ['ignore', 'pipe', 'inherit'],
    }),
  ).data.latency;
const doOverlap = ([a, b], [c, d]) => a <= d && c <= b;
const median = (list) => list.toSorted((x, y) => x - y)[list.length >> 1];

try {
  // The first run writes the roofline and the model's file.
  profile();
  const statistics = Object.fromEntries(
    metrics.map((metric) => [metric, { overlaps: 0, differences: [], intervals: [] }]),
  );
  for (let pair = 1; pair <= pairs; pair++) {
    const [first, second] = [profile(), profile()];
    const comparisons = metrics.map((metric) => {
      const [a, b] = [first[metric], second[metric]];
      const agrees = doOverlap(a.ci95, b.ci95);
      statistics[metric].overlaps += agrees ? 1 : 0;
      statistics[metric].differences.push(Math.abs(a.value - b.value) / a.value);
      statistics[metric].intervals.push((a.ci95[1] - a.ci95[0]) / 2 / a.value);
      return `${metric} ${a.value.toFixed(2)} / ${b.value.toFixed(2)} ${agrees ? 'overlap' : 'APART'}`;
    });
    console.log(`pair ${String(pair).padStart(2)}: ${comparisons.join(' · ')}`);
  }
  for (const metric of metrics) {
    const { overlaps, differences, intervals } = statistics[metric];
    if (overlaps < 0.9 * pairs) process.exitCode = 1;
    console.log(
      `${metric}: ${overlaps} of ${pairs} pairs overlap; means ${(100 * median(differences)).toFixed(1)} % apart (median), ` +
        `interval ± ${(100 * median(intervals)).toFixed(1)} % (median)`,
    );
  }
} finally {
  rmSync(home, { recursive: true, force: true });
}

// Startup of the built binary compared with a bare Node process; see README.md in this folder.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createHash } from 'node:crypto';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
const cli = join(root, 'dist', 'cli.js');
const home = mkdtempSync(join(tmpdir(), 'inferscope-cli-start-'));
/** A home with the same sessions, without headlines. */
const homeWithoutHeadlines = `${home}-plain`;
const run = (args, inferscopeHome = home) =>
  execFileSync(process.execPath, args, {
    env: { ...process.env, INFERSCOPE_HOME: inferscopeHome, NO_COLOR: '1' },
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  });

try {
  console.log('making one small profile …');
  run([cli, 'profile', '--launches', '1', '--runs', '1', '--output-len', '2', '--input-len', '8', '--quiet']);
  copySessions(1000);
  const sessions = JSON.parse(run([cli, 'session', 'list', '--json'])).data.sessions;
  const incomplete = sessions.filter(({ broken, headline }) => broken !== null || headline === null);
  if (sessions.length !== 1000 || incomplete.length > 0)
    throw new Error(`${sessions.length} listed, ${incomplete.length} broken or without headline`);
  cpSync(home, homeWithoutHeadlines, { recursive: true, filter: (path) => !path.endsWith('headline.json') });
  const cases = {
    'node -e 0': ['-e', '0'],
    '--version': [cli, '--version'],
    'session list (1,000 sessions)': [cli, 'session', 'list'],
    'without headlines': [cli, 'session', 'list'],
  };
  const times = Object.fromEntries(Object.keys(cases).map((name) => [name, []]));
  for (let round = 0; round < 21; round++) {
    for (const [name, args] of Object.entries(cases)) {
      const start = process.hrtime.bigint();
      run(args, name === 'without headlines' ? homeWithoutHeadlines : home);
      if (round > 0) times[name].push(Number(process.hrtime.bigint() - start) / 1e6);
    }
  }
  const median = (list) => list.toSorted((x, y) => x - y)[list.length >> 1];
  const bare = median(times['node -e 0']);
  const goals = { '--version': 150, 'session list (1,000 sessions)': 500 };
  for (const [name, list] of Object.entries(times)) {
    const ms = median(list);
    const goal = goals[name];
    const verdict = goal === undefined ? '' : `   goal ${goal} ms: ${ms > goal ? 'MISSED' : 'met'}`;
    if (ms > goal) process.exitCode = 1;
    console.log(
      `${name.padEnd(32)} median ${ms.toFixed(0).padStart(5)} ms   ${(ms / bare).toFixed(2)} × bare node${verdict}`,
    );
  }
} finally {
  rmSync(home, { recursive: true, force: true });
  rmSync(homeWithoutHeadlines, { recursive: true, force: true });
}

/** Copies the session under new ids, each with its manifest and checksum. */
function copySessions(count) {
  const sessions = join(home, 'sessions');
  const original = readdirSync(sessions).find((name) => !name.startsWith('.'));
  const manifest = JSON.parse(readFileSync(join(sessions, original, 'session.json'), 'utf8'));
  rmSync(join(sessions, original, 'derived', 'report.html'), { force: true });
  const headline = readFileSync(join(sessions, original, 'derived', 'headline.json'), 'utf8');
  for (let i = 1; i < count; i++) {
    const id = `20260101-${String(i).padStart(6, '0')}-copy`;
    cpSync(join(sessions, original), join(sessions, id), { recursive: true });
    const text = JSON.stringify({ ...manifest, data: { ...manifest.data, id } }, null, 2);
    writeFileSync(join(sessions, id, 'session.json'), text);
    const sha256 = createHash('sha256').update(text).digest('hex');
    writeFileSync(join(sessions, id, 'session.json.sha256'), `${sha256}  session.json\n`);
    const copiedHeadline = JSON.stringify({ ...JSON.parse(headline), session_sha256: sha256 });
    writeFileSync(join(sessions, id, 'derived', 'headline.json'), copiedHeadline);
  }
}

import { expect, test } from 'vitest';
import { importSession } from '../../session/archive-import.js';
import { openSession, type Session } from '../../session/open.js';
import { testHome } from '../../session/test-folder.js';
import { explainSession } from '../explain/explain.js';
import { profileRows } from '../../facts/test-rows.js';
import { sessionOf } from '../../facts/test-session.js';
import { fixture, imported } from '../../facts/trace/test-import.js';
import { expectEvidence, expectShares } from './test-evidence.js';

const home = testHome();

/** Captures of every tool, the embedded engine's profile and a recording of a GPU; planted faults: planted-faults.score.test.ts. */
const sessions: [string, () => Promise<Session>][] = [
  ...['tiny-whole', 'tiny-nsys', 'tiny-graph', 'tiny-graph-opaque'].map(
    (name): [string, () => Promise<Session>] => [
      `nsys ${name}`,
      () => imported(home, 'nsys-sqlite', fixture(`nsys-2025.3.1-h200/${name}.sqlite`)),
    ],
  ),
  ['kineto', () => imported(home, 'kineto', fixture('kineto-torch2.11-h200/kineto-tiny.json.gz'))],
  ['kineto on a CPU', () => imported(home, 'kineto', fixture('kineto-torch2.11-cpu/layer.json.gz'))],
  ...['ncu-kernels.raw', 'ncu-kernels.details', 'ncu-tiny.raw'].map(
    (name): [string, () => Promise<Session>] => [
      `ncu ${name}`,
      () => imported(home, 'ncu-csv', fixture(`ncu-2025.3.1-h200/${name}.csv`)),
    ],
  ),
  ['embedded engine', () => sessionOf(home, profileRows())],
  [
    'recording',
    async () => openSession((await importSession(fixture('monitor-0.1-h200/session.tar.gz'), home)).id, home),
  ],
];

test.each(sessions)(
  '%s: the query of every finding runs on its own and returns its rows',
  async (_, make) => {
    const session = await make();
    const { findings, rules } = (await explainSession(session)).data;
    await expectEvidence(session, findings);
    expectShares(findings);
    const fired = rules.filter(({ outcome }) => outcome === 'fired').length;
    expect(new Set(findings.map(({ rule }) => rule)).size).toBe(fired);
  },
);

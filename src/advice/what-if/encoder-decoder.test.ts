import { expect, test } from 'vitest';
import { importSession } from '../../session/archive-import.js';
import { openSession } from '../../session/open.js';
import { testFolder } from '../../session/test-folder.js';
import { homeFolders } from '../../session/home.js';
import { whatIf } from './what-if.js';

test('predicts the steps of BART on another GPU and for a longer source', async () => {
  const home = homeFolders({ INFERSCOPE_HOME: testFolder() });
  const { id } = await importSession('test/fixtures/unprepared-h200/bart.tgz', home);
  const session = await openSession(id, home);
  const stagesOf = async (change: string) => (await whatIf(session, [change])).data.stages;
  for (const change of ['gpu=NVIDIA H100', 'context-len=512']) {
    for (const { kind, after_ms: ms } of await stagesOf(change))
      if (kind !== 'request') expect([change, kind, ms.value]).toEqual([change, kind, expect.any(Number)]);
  }
});

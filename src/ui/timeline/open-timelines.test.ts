import { expect, test } from 'vitest';
import { createSession } from '../../session/create.js';
import { testHome } from '../../session/test-folder.js';
import { summary } from '../../session/test-session.js';
import { Homes } from '../homes.js';
import { OpenSessions } from './open-timelines.js';

test('a small timeline is read before it is requested', async () => {
  const home = testHome();
  const writer = await createSession({ home, label: 'small', kind: 'run' });
  const keys = { execution_id: 'clean', capture_id: 'c0', host: 'h', pid: 7, rank: 0, tid: 1 };
  writer.sink.append('stages', {
    ...keys,
    stage_id: 0,
    phase_id: 0,
    kind: 'decode',
    raw_name: 'decode',
    start_ns: 1000,
    end_ns: 2000,
  });
  const { id } = await writer.finish(summary);
  const opened = new OpenSessions(new Homes([home]));
  const openSession = await opened.get(id);
  await opened.readAhead(openSession);
  const { timeline, failed } = await opened.timeline(id, 'clean');
  expect([timeline.reading, failed, timeline.tracks.length]).toEqual([null, null, 1]);
  await openSession.database.close();
});

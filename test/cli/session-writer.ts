/**
 * Writes sessions in a separate process, for tests that kill it, run several at once or fill its disk.
 * Arguments: forever | keep <ISO time> | fill <rows>
 */
import process from 'node:process';
import { createSession } from '../../src/session/create.js';
import { InferscopeError } from '../../src/model/errors.js';
import { summary } from '../../src/session/test-session.js';

const [mode, argument] = process.argv.slice(2);

try {
  const createdAt = mode === 'keep' && argument ? new Date(argument) : new Date();
  const writer = await createSession({ label: 'writer', kind: 'test', createdAt });
  const row = { execution_id: 'clean', capture_id: 'c0' };
  if (mode === 'forever') {
    await writer.addArtifact(Buffer.alloc(1000), { kind: 'log', captureId: 'c0', name: 'a.log' });
    for (let i = 0; ; i++) {
      for (let j = 0; j < 10_000; j++)
        writer.sink.append('telemetry', { ...row, t_ns: j, value: Math.random() });
      if (i === 5) process.stdout.write('writing\n');
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }
  // Random doubles do not compress, so each row takes at least 8 bytes.
  const rows = mode === 'fill' ? Number(argument) : 1000;
  for (let i = 0; i < rows; i++) writer.sink.append('telemetry', { ...row, t_ns: i, value: Math.random() });
  const { id } = await writer.finish(summary);
  process.stdout.write(`${id}\n`);
} catch (error) {
  const known = error instanceof InferscopeError ? error : null;
  process.stdout.write(`${JSON.stringify({ code: known?.code ?? String(error), ...known?.parts })}\n`);
  process.exitCode = known?.exitCode ?? 70;
}

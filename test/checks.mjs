// What `npm test` begins with: lint, types and the build, side by side. Ends with 1 when one of them fails.
import { spawn } from 'node:child_process';
import process from 'node:process';

const checks = ['lint', 'typecheck', 'build'];
const ended = checks.map(
  (name) =>
    new Promise((resolve) => {
      const child = spawn('npm', ['run', '--silent', name], { shell: process.platform === 'win32' });
      let text = '';
      for (const stream of [child.stdout, child.stderr]) {
        stream.setEncoding('utf8');
        stream.on('data', (part) => (text += part));
      }
      child.on('error', (error) => resolve({ name, code: 1, text: String(error) }));
      child.on('close', (code) => resolve({ name, code: code ?? 1, text }));
    }),
);
for await (const { name, code, text } of ended) {
  process.stdout.write(`${name}: ${code === 0 ? 'ok' : 'FAILED'}\n${code === 0 ? '' : text}`);
  if (code !== 0) process.exitCode = 1;
}

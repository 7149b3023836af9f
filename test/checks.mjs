// The first part of `npm test`: runs lint, layers, prose, words, typecheck and build in parallel. Exits with 1 if one of them fails.
import { spawn } from 'node:child_process';
import process from 'node:process';

const checks = ['lint', 'layers', 'prose', 'words', 'typecheck', 'build'];
const results = checks.map(
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
for await (const { name, code, text } of results) {
  // The build must print nothing, because `npm run demo` builds before it prints the demo's lines.
  const failed = code !== 0 || (name === 'build' && text.trim() !== '');
  process.stdout.write(`${name}: ${failed ? 'FAILED' : 'ok'}\n${failed ? text : ''}`);
  if (failed) process.exitCode = 1;
}

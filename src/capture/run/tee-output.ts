import { createWriteStream } from 'node:fs';
import type { Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { redactText } from '../../model/redaction.js';
import { messageFilter } from './profiler-messages.js';

const tailLength = 64 * 1024;
/** Maximum line length; a secret split by a cut would survive, so the limit is far above normal lines. */
const maxLineLength = 256 * 1024;

interface TeedOutput {
  /** Waits for the stream's end, at most `graceMs`. @returns the end of the output, secrets replaced */
  end(graceMs: number): Promise<string>;
}

/**
 * Shows a program's output live and writes a copy without secrets to `path`. The messages of the profiler
 * `tool` around it are in the copy only; the program's own bytes are unchanged. When the viewer is
 * slow the program waits, as without inferscope; when the viewer is gone the copy continues.
 */
export function teeOutput(
  source: Readable,
  path: string,
  live: NodeJS.WritableStream | null,
  secrets: readonly string[],
  tool: string | null = null,
): TeedOutput {
  const filter = messageFilter(tool);
  const file = createWriteStream(path);
  const decoder = new StringDecoder('utf8');
  let pending = '';
  let tail = '';
  let fileFailed = false;
  file.on('error', () => {
    fileFailed = true;
    // A failed file is never drained: the program must not wait for it.
    source.resume();
  });

  function store(text: string): void {
    if (text === '') return;
    const clean = redactText(text, secrets);
    tail = (tail + clean).slice(-tailLength);
    if (!fileFailed && !file.write(clean)) {
      source.pause();
      file.once('drain', () => source.resume());
    }
  }

  const resume = () => source.resume();
  // A closed stream is never drained: the program must not wait for it. Standard streams stay open and close at each failed write.
  live?.on('close', resume);
  function show(bytes: Buffer): void {
    if (bytes.length === 0 || !live || !live.writable || live.write(bytes)) return;
    source.pause();
    live.once('drain', resume);
  }

  source.on('data', (chunk: Buffer) => {
    show(filter ? filter.take(chunk) : chunk);
    pending += decoder.write(chunk);
    // Progress bars end their lines with a carriage return.
    const cut = Math.max(pending.lastIndexOf('\n'), pending.lastIndexOf('\r')) + 1;
    const length = cut === 0 && pending.length > maxLineLength ? pending.length : cut;
    store(pending.slice(0, length));
    pending = pending.slice(length);
  });
  const closed = new Promise<void>((resolve) => source.once('close', resolve));

  return {
    async end(graceMs) {
      let timer: NodeJS.Timeout | undefined;
      const grace = new Promise<void>((resolve) => (timer = setTimeout(resolve, graceMs)));
      await Promise.race([closed, grace]);
      clearTimeout(timer);
      source.destroy();
      live?.off('close', resume);
      if (filter) show(filter.flush());
      store(pending + decoder.end());
      pending = '';
      await new Promise<void>((resolve) => {
        if (fileFailed) return resolve();
        file.once('error', () => resolve());
        file.end(resolve);
      });
      return tail;
    },
  };
}

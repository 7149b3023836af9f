/**
 * nsys, ncu and torch's profiler write messages and progress bars to the program's output. The stored log keeps them; the terminal shows
 * only the program's own output. Only complete messages in the profilers' exact format are removed, so that no line of the program is lost.
 */
interface Message {
  /** Start of a message, anywhere in a line: it can interrupt a program that streams tokens. */
  start: string;
  /** The complete message, as a sticky expression. */
  pattern: RegExp;
  /** Required continuation, since a program may print the same words. */
  next?: string;
  /** If this matches after `start` but `pattern` does not, the text belongs to the program. Default: a line end. */
  endPattern?: RegExp;
}

/** As printed by nsys 2025.3; the report is always called nsys.nsys-rep. */
const nsysMessages: Message[] = [
  { start: 'Collecting data...\n', pattern: /Collecting data\.\.\.\n/y, next: "Generating '/" },
  { start: 'Processing events...\n', pattern: /Processing events\.\.\.\n/y, next: "Generating '/" },
  { start: "Generating '/", pattern: /Generating '\/[^'\n]*nsys-report-\w+\.qdstrm'\n/y },
  { start: '\r[1/1] [', pattern: /\r\[1\/1\] \[=*\d{1,3}% *\] nsys\.nsys-rep\n?/y, endPattern: /[\r\n]/ },
  { start: 'Generated:\n', pattern: /Generated:\n\s+\/[^\n]*\/nsys\.nsys-rep\n/y },
  { start: 'Capture range ', pattern: /Capture range (?:started|ended) in the application\.\n/y },
];

/** As printed by ncu 2025.3. Its errors (==ERROR==) are shown. */
const ncuMessages: Message[] = [
  {
    start: '==PROF== ',
    pattern:
      /==PROF== (?:(?:Dis)?[Cc]onnected (?:to|from) process \d+[^\n]*|Profiling "[^\n]*": 0%\.*50%\.*100% - \d+ pass(?:es)?|Report: [^\n]*\/ncu\.ncu-rep)\n/y,
  },
  {
    start: '==WARNING== ',
    pattern:
      /==WARNING== (?:Note: Running with unmodified GPU clocks|Unable to access the following|No kernels were profiled)[^\n]*\n/y,
  },
];

/** As printed by libkineto of torch 2.11 and 2.13 without a GPU, and at start and stop; its other errors are shown. */
const torchMessages: Message[] = [
  {
    start: 'ERROR:20',
    pattern:
      /ERROR:20[\d-]+ [\d:]+ \d+:\d+ DeviceProperties\.cpp:\d+\] gpuGetDeviceCount failed with code \d+\n/y,
  },
  {
    start: 'USDT:20',
    pattern: /USDT:20[\d-]+ [\d:]+ \d+:\d+ SyncActivityProfilerHandler\.cpp:\d+\] profiler_(?:start|stop)\n/y,
  },
];

const messages: Record<string, Message[]> = { nsys: nsysMessages, ncu: ncuMessages, torch: torchMessages };

/** Maximum length of a message. */
const maxCharacters = 16 * 1024;

interface MessageFilter {
  /** @returns the program's own part; the start of a possible message is held until it is complete */
  take(chunk: Buffer): Buffer;
  /** The held text. */
  flush(): Buffer;
}

/** Removes a profiler's messages from a stream; null for a profiler without messages. */
export function messageFilter(tool: string | null): MessageFilter | null {
  const toolMessages = tool === null ? undefined : messages[tool];
  if (!toolMessages) return null;
  let heldText = '';

  function release(final: boolean): Buffer {
    let output = '';
    for (;;) {
      const start = findMessageStart(heldText, toolMessages!, final);
      output += heldText.slice(0, start.index);
      heldText = heldText.slice(start.index);
      if (!start.message) break;
      const length = messageLength(start.message, heldText, final);
      if (length === null) break;
      if (length === 0) {
        output += heldText.slice(0, start.message.start.length);
        heldText = heldText.slice(start.message.start.length);
      } else heldText = heldText.slice(length);
    }
    if (final) {
      output += heldText;
      heldText = '';
    }
    return Buffer.from(output, 'latin1');
  }

  return {
    take(chunk) {
      heldText += chunk.toString('latin1');
      return release(false);
    },
    flush: () => release(true),
  };
}

/** A text without the messages of a profiler. */
export function removeProfilerMessages(tool: string | null, text: string): string {
  const filter = messageFilter(tool);
  if (!filter) return text;
  return Buffer.concat([filter.take(Buffer.from(text)), filter.flush()]).toString();
}

/** First position where a message starts, or where the end of the text may start one. */
function findMessageStart(
  text: string,
  toolMessages: readonly Message[],
  final: boolean,
): { index: number; message: Message | null } {
  let index = text.length;
  let message: Message | null = null;
  for (const candidate of toolMessages) {
    const found = text.indexOf(candidate.start);
    if (found >= 0 && found < index) [index, message] = [found, candidate];
  }
  if (final) return { index, message };
  for (const { start } of toolMessages) {
    for (let length = Math.min(start.length - 1, text.length); length > 0; length--) {
      const from = text.length - length;
      if (from < index && start.startsWith(text.slice(from))) [index, message] = [from, null];
    }
  }
  return { index, message };
}

/** Length of the message that `text` starts with: 0 if it is not a message, null if more bytes are needed. */
function messageLength(
  { start, pattern, next, endPattern }: Message,
  text: string,
  final: boolean,
): number | null {
  pattern.lastIndex = 0;
  const matchedText = pattern.exec(text)?.[0];
  if (matchedText === undefined) {
    const isDecided =
      final || text.length > maxCharacters || (endPattern ?? /\n/).test(text.slice(start.length));
    return isDecided ? 0 : null;
  }
  const rest = text.slice(matchedText.length);
  if (next !== undefined) {
    if (rest.startsWith(next)) return matchedText.length;
    return final || !next.startsWith(rest) ? 0 : null;
  }
  // The line end of a progress bar may come in the next bytes.
  return final || rest !== '' || matchedText.endsWith('\n') ? matchedText.length : null;
}

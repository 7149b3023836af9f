/** Headers of a response, names in lower case; the last one of repeated names. */
export type ResponseHeaders = ReadonlyMap<string, string>;

interface ResponseListener {
  onHead(status: number, headers: ResponseHeaders): void;
  /** A piece of the body without transfer coding: bytes[from, to). Valid only during the call. */
  onBody(bytes: Buffer, from: number, to: number): void;
  /**
   * The answer is complete.
   * @param reusable whether the connection can carry another request
   */
  onEnd(reusable: boolean): void;
}

/** The bytes are not valid HTTP/1.1. */
export class MalformedResponse extends Error {}

const maxHeadBytes = 65_536;
const [lf, cr, semicolon] = [10, 13, 59];

type State = 'head' | 'length' | 'close' | 'size' | 'extension' | 'chunk' | 'chunk_end' | 'trailer';

/**
 * Reads the answers of one HTTP/1.1 connection in sequence (RFC 9112, sections 2 to 7), from pieces cut anywhere.
 * Written by hand, because a token must take only microseconds: bench/load/README.md compares it with undici.
 */
export function responseReader(listener: ResponseListener) {
  let state: State = 'head';
  let head = Buffer.alloc(0);
  /** Remaining bytes of the body or the chunk. */
  let remaining = 0;
  let digits = 0;
  let keepAlive = true;
  let trailerBytes = 0;

  function end(reusable: boolean): void {
    state = 'head';
    listener.onEnd(reusable && keepAlive);
  }

  /** @returns the start of the body, or `to` if the head is not complete */
  function readHead(bytes: Buffer, from: number, to: number): number {
    const known = head.length;
    head = Buffer.concat([head, bytes.subarray(from, to)]);
    const index = head.indexOf('\r\n\r\n', Math.max(0, known - 3));
    const begin = head.subarray(0, 7).toString('latin1');
    if (!'HTTP/1.'.startsWith(begin)) throw new MalformedResponse(`it begins with ${JSON.stringify(begin)}`);
    if (index < 0) {
      if (head.length > maxHeadBytes) throw new MalformedResponse('its head has no end');
      return to;
    }
    const lines = head.toString('latin1', 0, index).split('\r\n');
    head = Buffer.alloc(0);
    readFields(lines);
    return from + index + 4 - known;
  }

  function readFields([statusLine = '', ...lines]: string[]): void {
    const [, version, code] = /^HTTP\/1\.(\d) (\d{3})(?: |$)/.exec(statusLine) ?? [];
    if (code === undefined) throw new MalformedResponse(`its first line is ${JSON.stringify(statusLine)}`);
    const headers = new Map<string, string>();
    for (const line of lines) {
      const colon = line.indexOf(':');
      if (colon <= 0) throw new MalformedResponse(`it has the header ${JSON.stringify(line)}`);
      headers.set(line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim());
    }
    const status = Number(code);
    // 100 Continue, 103 Early Hints: the answer follows.
    if (status < 200) return;
    const connection = headers.get('connection')?.toLowerCase() ?? '';
    keepAlive = version === '1' ? !connection.includes('close') : connection.includes('keep-alive');
    const length = headers.get('content-length');
    if (length !== undefined && !/^\d+$/.test(length))
      throw new MalformedResponse(`its content-length is ${JSON.stringify(length)}`);
    listener.onHead(status, headers);
    if (status === 204 || status === 304) end(true);
    else if (/(?:^|[ ,])chunked$/i.test(headers.get('transfer-encoding') ?? '')) {
      state = 'size';
      [remaining, digits] = [0, 0];
    } else if (length === undefined) state = 'close';
    else {
      remaining = Number(length);
      if (remaining === 0) end(true);
      else state = 'length';
    }
  }

  function readSize(byte: number): void {
    const digit = hexDigit(byte);
    if (digit >= 0) {
      // No chunk is as long as 2^48 bytes.
      if (++digits > 12) throw new MalformedResponse('a chunk has no sensible size');
      remaining = remaining * 16 + digit;
    } else if (digits > 0 && byte === lf) beginChunk();
    else if (digits > 0 && (byte === semicolon || byte === 32)) state = 'extension';
    else if (digits === 0 || byte !== cr) throw new MalformedResponse('a chunk has no size');
  }

  function beginChunk(): void {
    digits = 0;
    trailerBytes = 0;
    state = remaining === 0 ? 'trailer' : 'chunk';
  }

  /** Bytes of one line of the trailer; an empty line ends the answer. */
  function readTrailer(byte: number): void {
    if (byte === lf) {
      if (trailerBytes === 0) end(true);
      trailerBytes = 0;
    } else if (byte !== cr) trailerBytes++;
  }

  return {
    /** @throws MalformedResponse */
    feed(bytes: Buffer, from: number, to: number): void {
      let offset = from;
      while (offset < to) {
        switch (state) {
          case 'head':
            offset = readHead(bytes, offset, to);
            break;
          case 'size':
            readSize(bytes[offset++]!);
            break;
          case 'extension':
            if (bytes[offset++] === lf) beginChunk();
            break;
          case 'chunk_end':
            if (bytes[offset] !== cr && bytes[offset] !== lf)
              throw new MalformedResponse('a chunk is longer than its stated size');
            if (bytes[offset++] === lf) state = 'size';
            break;
          case 'trailer':
            readTrailer(bytes[offset++]!);
            break;
          case 'close':
            listener.onBody(bytes, offset, to);
            offset = to;
            break;
          case 'length':
          case 'chunk': {
            const stop = Math.min(to, offset + remaining);
            remaining -= stop - offset;
            const begin = offset;
            offset = stop;
            listener.onBody(bytes, begin, stop);
            if (remaining === 0) {
              if (state === 'chunk') state = 'chunk_end';
              else end(true);
            }
            break;
          }
        }
      }
    },
    /**
     * The connection was closed. Ends an answer without a length.
     * @returns false if an answer was truncated
     */
    close(): boolean {
      if (state !== 'close') return false;
      end(false);
      return true;
    },
  };
}

function hexDigit(byte: number): number {
  if (byte >= 48 && byte <= 57) return byte - 48;
  const lower = byte | 32;
  return lower >= 97 && lower <= 102 ? lower - 87 : -1;
}

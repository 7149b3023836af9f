import { MalformedResponse } from './http-response.js';

/**
 * The kind of a failed exchange.
 * @param error Node's socket error, or the error of the answer's reader; null if the server closed
 */
export function failureKind(error: Error | null, answered: boolean, sent: boolean): string {
  if (error instanceof MalformedResponse) return 'malformed';
  const code = (error as NodeJS.ErrnoException | null)?.code ?? '';
  const tls = /^(?:ERR_TLS|ERR_SSL|ERR_OSSL|CERT_|SELF_SIGNED|DEPTH_ZERO|UNABLE_TO_|HOSTNAME_|EPROTO)/.test(
    code,
  );
  if (tls || /certificate|SSL routines|TLS connection/i.test(error?.message ?? '')) return 'tls';
  // A socket that closes during an answer is a different failure from one that never opened.
  if (answered) return 'stream_cut';
  return sent ? 'disconnected' : 'connect';
}

/** What to do where no TLS connection was made. */
export const tlsFix =
  'Check the certificate, or NODE_EXTRA_CA_CERTS for one of your own. A server without TLS needs http://.';

const failureLabels: Record<string, string> = {
  connect: 'no connection',
  tls: 'TLS failed',
  disconnected: 'closed before an answer',
  timeout: 'timed out',
  stream_cut: 'stream cut off',
  stream_error: 'error inside the stream',
  malformed: 'malformed stream',
  too_large: 'answer too large',
  empty: 'no generated text',
  not_streamed: 'answered without streaming',
  cancelled: 'canceled by inferscope',
};

export function failureWords(kind: string): string {
  return failureLabels[kind] ?? kind.replace('_', ' ').replace('http', 'HTTP');
}

/** The kind of a failed exchange, from the error Node or undici gives. */
export function failureKind(error: Error & { code?: string }, answered: boolean): string {
  const code = error.code ?? (error.cause as { code?: string } | undefined)?.code ?? '';
  const tls = /^(?:ERR_TLS|ERR_SSL|CERT_|SELF_SIGNED|DEPTH_ZERO|UNABLE_TO_|EPROTO)/.test(code);
  if (tls || /certificate|SSL routines/i.test(error.message)) return 'tls';
  // A socket that closes in the middle of an answer is another fault than one that never opened.
  if (answered) return 'stream_cut';
  if (code === 'UND_ERR_CONNECT_TIMEOUT') return 'connect';
  if (['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'ETIMEDOUT'].includes(code))
    return 'connect';
  if (code.startsWith('HPE_')) return 'malformed';
  return 'disconnected';
}

const words: Record<string, string> = {
  connect: 'no connection',
  tls: 'TLS failed',
  disconnected: 'closed before an answer',
  timeout: 'not ended in time',
  stream_cut: 'stream cut off',
  stream_error: 'error inside the stream',
  malformed: 'malformed stream',
  empty: 'no generated text',
  not_streamed: 'answered without streaming',
  cancelled: 'stopped by us',
};

export function failureWords(kind: string): string {
  return words[kind] ?? kind.replace('_', ' ').replace('http', 'HTTP');
}

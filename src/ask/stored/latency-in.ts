/** Latencies of requests as in an answer. */
export const latencyNames = { ttft: 'TTFT', tpot: 'TPOT', itl: 'ITL', e2e: 'end-to-end latency' } as const;
export type RequestLatency = keyof typeof latencyNames;

const patterns: Readonly<Record<RequestLatency, RegExp>> = {
  ttft: /\bttft\b|\bfirst token\b/i,
  tpot: /\btpot\b|\bper (?:output )?token\b/i,
  itl: /\bitl\b|\binter[- ]?token\b/i,
  e2e: /\blatenc\w*|\be2e\b|\bend[- ]to[- ]end\b|\bp9\d\b/i,
};

/** The latency that a question names; null for none. */
export const latencyIn = (text: string): RequestLatency | null =>
  (Object.keys(patterns) as RequestLatency[]).find((id) => patterns[id].test(text)) ?? null;

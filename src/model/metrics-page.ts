import { monotonicNs } from './clock.js';
import { smallPage } from './small-page.js';

/** The page of a server's Prometheus endpoint. */
interface MetricsPage {
  /** CLOCK_MONOTONIC in the middle of the request. */
  t_ns: number;
  text: string;
}

const timeoutMs = 2000;

/** Fetches the page; null if there is none, as for most hosted APIs. */
export async function fetchMetricsPage(url: string): Promise<MetricsPage | null> {
  const began = monotonicNs();
  try {
    const { status, text } = await smallPage(url, { signal: AbortSignal.timeout(timeoutMs) });
    return status === 200 ? { t_ns: Math.round((began + monotonicNs()) / 2), text } : null;
  } catch {
    return null;
  }
}

/** Fetches pages periodically until stop(), which fetches a last one; never two at once. */
export function sampleMetrics(
  url: string,
  onPage: (page: MetricsPage | null) => void,
  periodMs = 250,
): { stop(): Promise<void> } {
  let pending: Promise<void> | null = null;
  const fetchOnce = async () => {
    onPage(await fetchMetricsPage(url));
    pending = null;
  };
  const tick = () => (pending ??= fetchOnce());
  void tick();
  const timer = setInterval(() => void tick(), periodMs);
  timer.unref();
  return {
    async stop() {
      clearInterval(timer);
      if (pending) await pending;
      await fetchOnce();
    },
  };
}

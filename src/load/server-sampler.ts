import { smallPage } from '../model/small-page.js';
import { monotonicNs } from './clock.js';
import { readServerMetrics, type ServerReading } from '../model/server-metrics.js';

interface ServerSampler {
  /** Readings with CLOCK_MONOTONIC in the middle of the scrape, ns. */
  stop(): Promise<{ t_ns: number; reading: ServerReading }[]>;
}

const scrapeTimeoutMs = 2000;

/** One scrape; null when there is no such page or it names nothing we know. */
export async function scrapeServer(
  url: string,
): Promise<{ t_ns: number; server: string | null; reading: ServerReading } | null> {
  const began = monotonicNs();
  try {
    const signal = AbortSignal.timeout(scrapeTimeoutMs);
    const { status, text } = await smallPage(url, { signal });
    const t_ns = Math.round((began + monotonicNs()) / 2);
    if (status !== 200) return null;
    const { server, reading } = readServerMetrics(text);
    return Object.keys(reading).length === 0 ? null : { t_ns, server, reading };
  } catch {
    // No /metrics is the rule for hosted APIs: the caller says that it is absent.
    return null;
  }
}

/** Scrapes until stop(), never two at once. */
export function startServerSampler(url: string, periodMs = 250): ServerSampler {
  const readings: { t_ns: number; reading: ServerReading }[] = [];
  let under: Promise<void> | null = null;
  async function scrape(): Promise<void> {
    const found = await scrapeServer(url);
    if (found) readings.push({ t_ns: found.t_ns, reading: found.reading });
    under = null;
  }
  function take(): Promise<void> {
    under ??= scrape();
    return under;
  }
  void take();
  const timer = setInterval(() => void take(), periodMs);
  timer.unref();
  return {
    async stop() {
      clearInterval(timer);
      if (under) await under;
      await take();
      return readings;
    },
  };
}

import { fetchMetricsPage, sampleMetrics } from '../model/metrics-page.js';
import { readServerMetrics, type ServerReading } from '../model/server-metrics.js';

interface ServerSampler {
  /** Readings with CLOCK_MONOTONIC in the middle of the scrape, ns. */
  stop(): Promise<{ t_ns: number; reading: ServerReading }[]>;
}

type Scraped = { t_ns: number; server: string | null; reading: ServerReading };

/** Metrics of a page; null if there is none, or it has no known metric. */
function readScrape(page: Awaited<ReturnType<typeof fetchMetricsPage>>): Scraped | null {
  const read = page === null ? null : readServerMetrics(page.text);
  return page === null || read === null || Object.keys(read.reading).length === 0
    ? null
    : { t_ns: page.t_ns, ...read };
}

export const scrapeServer = async (url: string): Promise<Scraped | null> =>
  readScrape(await fetchMetricsPage(url));

export function startServerSampler(url: string, periodMs?: number): ServerSampler {
  const readings: { t_ns: number; reading: ServerReading }[] = [];
  const sampling = sampleMetrics(
    url,
    (page) => {
      const scrape = readScrape(page);
      if (scrape) readings.push({ t_ns: scrape.t_ns, reading: scrape.reading });
    },
    periodMs,
  );
  return {
    async stop() {
      await sampling.stop();
      return readings;
    },
  };
}

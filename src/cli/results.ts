import { openSession } from '../session/open.js';
import { print, printDocument, terminalWidth } from './output.js';

/** Shows what a session holds of other benchmark tools. @returns false when it holds nothing of the kind */
export async function showResults(id: string, { json }: { json?: boolean }): Promise<boolean> {
  const { analyzeResults } = await import('../analyze/benchmark-results/results.js');
  const found = await analyzeResults(await openSession(id));
  if (!found) return false;
  if (json) printDocument(found);
  else {
    const { resultsSummary } = await import('../report/terminal/results.js');
    print(resultsSummary(found, terminalWidth()));
  }
  return true;
}

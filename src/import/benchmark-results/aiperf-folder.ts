import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** What AIPerf 0.13 writes to the artifact folder of one run: its requests and their summary. */
const names = ['profile_export.jsonl', 'profile_export_aiperf.json'];

/** Files of one run in an artifact folder of AIPerf; none for any other folder. When all requests failed there is no summary. */
export const aiperfFiles = (folder: string): string[] =>
  names.map((name) => join(folder, name)).filter((path) => existsSync(path));

import { ortTraceImporter } from './ort-trace.js';
import { recordImporter } from './record.js';
import type { Importer } from './importer.js';

/** Every format inferscope reads, in the order they are sniffed. */
export const importers: Importer[] = [recordImporter, ortTraceImporter];

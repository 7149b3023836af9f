import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { InferscopeError } from '../../model/errors.js';

/** One record of the page: its fields, and the number of the line it begins on. */
export interface CsvRecord {
  fields: string[];
  line: number;
}

/**
 * Records of an `ncu --csv` page as RFC 4180 has them (a rule's description may hold line ends). What the profiled
 * program and ncu print around the page ("==PROF== Connected to process …") comes as records too: the reader tells
 * them by their first field. Streams; a line of `--set full` is about 100 kB.
 * @throws E_TRACE_FILE when the file ends inside quotes
 */
export async function* csvRecords(path: string): AsyncGenerator<CsvRecord> {
  let line = 0;
  let begin = 0;
  let open: string | null = null;
  for await (const text of createInterface({ input: createReadStream(path, 'utf8'), crlfDelay: Infinity })) {
    line++;
    if (open === null) {
      // Only lines that begin with a quote can go on: a lone quote in the program's own output must not swallow the page.
      if (!text.startsWith('"')) {
        yield { fields: splitFields(text), line };
        continue;
      }
      begin = line;
      open = text;
    } else {
      open += `\n${text}`;
    }
    if (quotesAreClosed(open)) {
      yield { fields: splitFields(open), line: begin };
      open = null;
    }
  }
  if (open !== null) throw badPage(path, `it ends inside the record that begins on line ${begin}`);
}

function quotesAreClosed(text: string): boolean {
  let quotes = 0;
  for (let at = text.indexOf('"'); at !== -1; at = text.indexOf('"', at + 1)) quotes++;
  return quotes % 2 === 0;
}

function splitFields(text: string): string[] {
  const fields: string[] = [];
  let at = 0;
  for (;;) {
    if (text[at] === '"') {
      let end = at + 1;
      for (; end < text.length; end++) {
        if (text[end] !== '"') continue;
        if (text[end + 1] !== '"') break;
        end++;
      }
      fields.push(text.slice(at + 1, end).replaceAll('""', '"'));
      at = end + 1;
    } else {
      const comma = text.indexOf(',', at);
      const end = comma === -1 ? text.length : comma;
      fields.push(text.slice(at, end));
      at = end;
    }
    if (text[at] !== ',') return fields;
    at++;
  }
}

export function badPage(path: string, why: string): InferscopeError {
  return new InferscopeError('E_TRACE_FILE', {
    what: `cannot read the Nsight Compute page ${path}`,
    why,
    fix: 'Write it again: ncu -i REPORT.ncu-rep --csv --page raw > page.csv',
  });
}

export function interrupted(path: string): InferscopeError {
  return new InferscopeError('E_INTERRUPTED', {
    what: `the import of ${path} was interrupted`,
    why: 'Ctrl-C was pressed.',
    fix: 'Run it again; nothing was kept of it.',
  });
}

import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { unreadableFile } from '../trace-file-error.js';

/** One record of the page: its fields, and the number of its first line. */
interface CsvRecord {
  fields: string[];
  line: number;
}

/**
 * Records of an `ncu --csv` page by RFC 4180 (a rule's description may have line breaks). Output of the profiled
 * program and of ncu around the page ("==PROF== Connected to process …") also comes as records, which the reader
 * distinguishes by their first field. Streams; a `--set full` row is about 20 kB.
 * @throws E_TRACE_FILE if the file ends inside quotes, or a record is longer than any of ncu's
 */
export async function* readCsvRecords(path: string): AsyncGenerator<CsvRecord> {
  let line = 0;
  let firstLine = 0;
  let openLines: string[] = [];
  let characters = 0;
  for await (const text of createInterface({ input: createReadStream(path, 'utf8'), crlfDelay: Infinity })) {
    line++;
    // Only kernel records can span lines: a lone quote in the program's own output must not swallow the page.
    if (openLines.length === 0 && !/^"\d+",/.test(text)) {
      yield { fields: splitFields(text), line };
      continue;
    }
    if (openLines.length === 0) firstLine = line;
    const closes = hasOddQuotes(text) === openLines.length > 0;
    openLines.push(text);
    characters += text.length;
    if (characters > maxRecordLength)
      throw badPage(path, `the record that starts on line ${firstLine} does not end`);
    if (!closes) continue;
    yield { fields: splitFields(openLines.length === 1 ? text : openLines.join('\n')), line: firstLine };
    openLines = [];
    characters = 0;
  }
  if (openLines.length > 0) throw badPage(path, `it ends inside the record that starts on line ${firstLine}`);
}

/** Far above the row of a full set (20 kB) with a long template name. */
const maxRecordLength = 16 * 2 ** 20;

function hasOddQuotes(text: string): boolean {
  let odd = false;
  for (let index = text.indexOf('"'); index !== -1; index = text.indexOf('"', index + 1)) odd = !odd;
  return odd;
}

function splitFields(text: string): string[] {
  const fields: string[] = [];
  let position = 0;
  for (;;) {
    if (text[position] === '"') {
      let end = text.indexOf('"', position + 1);
      let doubled = false;
      while (end !== -1 && text[end + 1] === '"') {
        doubled = true;
        end = text.indexOf('"', end + 2);
      }
      // Never closed: a line of the program's own output.
      if (end === -1) end = text.length;
      const field = text.slice(position + 1, end);
      fields.push(doubled ? field.replaceAll('""', '"') : field);
      position = end + 1;
    } else {
      const comma = text.indexOf(',', position);
      const end = comma === -1 ? text.length : comma;
      fields.push(text.slice(position, end));
      position = end;
    }
    if (text[position] !== ',') return fields;
    position++;
  }
}

export const badPage = unreadableFile(
  'Nsight Compute page',
  'Write it again: ncu -i REPORT.ncu-rep --csv --page raw > page.csv',
);

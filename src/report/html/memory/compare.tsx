import type { Document } from '../../../model/document.js';
import type { MemoryCompareResult } from '../../../model/documents/memory-compare.js';
import { noValue } from '../../format.js';
import { changeTables, sideWords } from '../../memory-compare-words.js';
import { Page } from '../page.js';
import { DataTable } from '../parts.js';
import { LoudNotices } from '../summary-notices.js';

const anchor = (title: string): string => title.toLowerCase().replaceAll(/[^a-z]+/g, '-');

/** `memory compare --html`: one small page, tables only, no script of ours needed to read it. */
export function memoryCompareReport(document: Document<MemoryCompareResult>): string {
  const { data, issues } = document;
  const tables = changeTables(data).map((one) => ({ id: anchor(one.title), ...one }));
  const page = (
    <Page
      title={`memory: ${data.base.label} / ${data.now.label} · inferscope`}
      contents={[
        { id: 'summary', title: 'Summary' },
        ...tables,
        { id: 'differences', title: 'What differs' },
      ]}
      data={document}
      clientScript=""
    >
      <header id="summary">
        <h1>
          {data.base.label} → {data.now.label}
        </h1>
        <p class="identity">
          base: {sideWords(data.base)}
          <br />
          new: {sideWords(data.now)}
        </p>
        <ul>
          {data.headlines.map((text) => (
            <li>{text}</li>
          ))}
        </ul>
        <LoudNotices issues={issues} />
      </header>
      {tables.map(({ id, title, rows }) => (
        <section id={id} aria-labelledby={`${id}-title`}>
          <h2 id={`${id}-title`}>
            <a href={`#${id}`}>{title}</a>
          </h2>
          <DataTable
            caption={`${title}; GB are 10^9 bytes, differences against the base`}
            columns={[
              { head: '' },
              ...['base', 'new', 'difference', '%'].map((head) => ({ head, numeric: true })),
              ...(rows[0]!.length > 5 ? [{ head: 'confidence' }] : []),
            ]}
            rows={rows}
          />
        </section>
      ))}
      <section id="differences" aria-labelledby="differences-title">
        <h2 id="differences-title">
          <a href="#differences">What differs</a>
        </h2>
        {data.differences.length === 0 ? (
          <p>The configurations are the same.</p>
        ) : (
          <DataTable
            caption="Configuration, dtypes, engine and machine"
            columns={[{ head: '' }, { head: 'base', wraps: true }, { head: 'new', wraps: true }]}
            rows={data.differences.map(({ label, base, now }) => [label, base ?? noValue, now ?? noValue])}
          />
        )}
      </section>
      <footer>
        inferscope {document.tool_version} · the page holds its data as {document.schema} JSON in{' '}
        <code>#profile-data</code>
      </footer>
    </Page>
  );
  return `<!DOCTYPE html>\n${String(page)}\n`;
}

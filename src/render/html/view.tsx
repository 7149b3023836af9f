import type { FC } from 'hono/jsx';
import type { Document } from '../../model/document.js';
import type { ExplainResult } from '../../model/documents/explain.js';
import { figureParts } from '../../report/format.js';
import { documentPage } from '../../report/html/document-page.js';
import { explainParts, Sentences } from '../../report/html/explain/explain.js';
import { LineKey } from '../../report/html/line-key.js';
import { Absent, Behind, ChartFrame, DataTable, FigureText, Missing } from '../../report/html/parts.js';
import { LoudNotices, QuietNotes } from '../../report/html/summary-notices.js';
import { ColorKey } from '../../report/html/trace/trace-parts.js';
import type { KeyEntry } from '../../report/charts/chart.js';
import { chartNamed } from '../../report/charts/registry.js';
import { collapsed } from '../../report/notices.js';
import { themes, type Theme } from '../../report/palette.js';
import type { Block, Table, Text, Value, View } from '../../views/block.js';
import { explained } from '../reasons.js';
import { parts, plainText, rawValue, valueText } from '../value.js';

interface PageOptions {
  /** Text of dist/report-client.js, which draws the charts. */
  clientScript: string;
  /** Text of dist/report-reading.js, for a page without charts. */
  readingScript?: string;
  /** What leads the page: sentences, waterfall, findings. */
  explain?: Document<ExplainResult> | null;
}

/** A view as one page without any remote asset. */
export function pageOfView(view: View, { explain = null, ...scripts }: PageOptions): string {
  const { session, document } = view;
  return documentPage<unknown>({
    title: view.title,
    document,
    session: { id: session.id ?? 'not saved', started_at: session.started_at },
    summary: (
      <header id="summary">
        <p class="kicker">
          inferscope {view.command} · {session.id ?? 'not saved'} ·{' '}
          {session.started_at.slice(0, 16).replace('T', ' ')} UTC
        </p>
        <h1>{view.title}</h1>
        <Sentences explain={explain} />
        <Blocks blocks={view.lead} data={document.data} />
      </header>
    ),
    lead: explainParts(explain),
    sections: view.sections.map(({ id, title, blocks }) => ({
      id,
      title,
      render: () => <Blocks blocks={blocks} data={document.data} />,
    })),
    ...scripts,
  });
}

const Blocks: FC<{ blocks: readonly Block[]; data: unknown }> = ({ blocks, data }) => (
  <>
    {inPairs(blocks).map((run) =>
      run.length > 1 ? (
        <div class="two">
          {run.map((block) => (
            <div>
              <OneBlock block={block} data={data} />
            </div>
          ))}
        </div>
      ) : (
        run.map((block) => <OneBlock block={block} data={data} />)
      ),
    )}
  </>
);

/** Charts of half the width that follow each other together, every other block alone. */
function inPairs(blocks: readonly Block[]): Block[][] {
  const half = (block: Block | undefined): boolean => block?.t === 'chart' && block.half === true;
  const runs: Block[][] = [];
  for (const [index, block] of blocks.entries()) {
    if (half(block) && half(blocks[index - 1])) runs.at(-1)!.push(block);
    else runs.push([block]);
  }
  return runs;
}

const OneBlock: FC<{ block: Block; data: unknown }> = ({ block, data }) => {
  switch (block.t) {
    case 'text':
      return (
        <p>
          <Words text={block.text} />
        </p>
      );
    case 'heading':
      return (
        <h3>
          <Words text={block.text} />
        </h3>
      );
    case 'facts':
      return (
        <dl class="lead">
          {block.items.map(({ name, text }) => (
            <div>
              <dt>{name}</dt>
              <dd>
                <Words text={text} />
              </dd>
            </div>
          ))}
        </dl>
      );
    case 'cards':
      return (
        <ul class="cards">
          {block.cards.map(({ label, value, note }) => (
            <li>
              <p class="label">{label}</p>
              <p class="value">
                <Words text={value} />
              </p>
              {note !== undefined && (
                <p class="note">
                  <Words text={note} />
                </p>
              )}
            </li>
          ))}
        </ul>
      );
    case 'table':
      return <TableBlock table={block} />;
    case 'chart': {
      const { name, part = '', label, behind, title } = block;
      const chart = chartNamed(name);
      if (!chart) throw new Error(`there is no chart ${name}`);
      return (
        <>
          {title !== undefined && <OneBlock block={{ t: 'heading', text: title }} data={data} />}
          {chart.key && <Key label={label} entries={(theme) => chart.key!(data, part, theme)} />}
          <ChartFrame
            name={name}
            part={part}
            label={label}
            height={chart.height(data, part)}
            zooms={chart.zooms ?? false}
          >
            <OneBlock block={behind} data={data} />
          </ChartFrame>
        </>
      );
    }
    case 'notes':
      return (
        <ul class="notes">
          {block.items.map((item) => (
            <li>
              <Words text={item} />
            </li>
          ))}
        </ul>
      );
    case 'issues': {
      const issues = collapsed([...block.issues]);
      return (
        <>
          <LoudNotices issues={issues.filter(({ severity }) => severity !== 'info')} />
          <QuietNotes issues={issues.filter(({ severity }) => severity === 'info')} />
        </>
      );
    }
    case 'missing':
      return <Absent what={block.what} why={block.why} />;
    case 'commands':
      return (
        <dl class="definitions">
          {block.items.map(({ command, why }) => (
            <>
              <dt>
                <code>{command}</code>
              </dt>
              <dd>{why}</dd>
            </>
          ))}
        </dl>
      );
    case 'fold':
      return (
        <Behind title={block.title}>
          <Blocks blocks={block.blocks} data={data} />
        </Behind>
      );
  }
};

/** Colours follow the reader's theme; lines have the same in both. */
const Key: FC<{ label: string; entries: (theme: Theme) => KeyEntry[] }> = ({ label, entries }) => {
  const lines = entries(themes.light).flatMap(({ line, ...one }) => (line ? [{ ...one, ...line }] : []));
  return lines.length > 0 ? (
    <LineKey label={label} entries={lines} />
  ) : (
    <ColorKey label={label} entries={entries} />
  );
};

/** Sortable by its numbers where it has several rows. */
const TableBlock: FC<{ table: Table }> = ({ table }) => {
  const { columns, rows, reasons } = explained(table);
  return (
    <>
      <DataTable
        caption={plainText(table.title)}
        columns={columns.map(({ head, numeric, wraps }) => ({
          head,
          ...(numeric ? { numeric } : {}),
          ...(wraps ? { wraps } : {}),
        }))}
        rows={rows.map(({ cells }) => cells.map((cell) => <Words text={cell} />))}
        {...(rows.length > 2 && columns.some(({ numeric }) => numeric)
          ? { sortKeys: rows.map(({ cells }) => cells.map(rawValue)) }
          : {})}
        {...(table.filter ? { filter: true } : {})}
      />
      {reasons.length > 0 && (
        <ul class="notes">
          {reasons.map((reason) => (
            <li>{reason}</li>
          ))}
        </ul>
      )}
    </>
  );
};

const Words: FC<{ text: Text }> = ({ text }) => (
  <>{parts(text).map((part) => (typeof part === 'string' ? part : <Shown value={part} />))}</>
);

const Shown: FC<{ value: Value }> = ({ value }) => {
  if ('figure' in value) {
    const { reason } = figureParts(value.figure);
    if (reason !== null || value.spread)
      return <FigureText figure={value.figure} utilization={value.utilization ?? false} />;
    return <>{valueText(value)}</>;
  }
  if ('missing' in value) return <Missing reason={value.missing} />;
  if ('code' in value) return <code>{value.code}</code>;
  if (!('text' in value)) return <>{valueText(value)}</>;
  const { text, tone, hint } = value;
  if (tone === 'strong') return <strong>{text}</strong>;
  const className = tone === 'fault' ? 'fault' : tone === 'dim' ? 'missing' : '';
  return (
    <span {...(className ? { class: className } : {})} {...(hint ? { title: hint } : {})}>
      {text}
    </span>
  );
};

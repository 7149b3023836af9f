import type { Child, FC } from 'hono/jsx';
import type { Document } from '../../model/document.js';
import type { ExplainResult, WhatIfResult } from '../../model/documents/explain.js';
import { Page } from './page.js';
import { Absent, Behind, ChartFrame, DataTable } from './parts.js';
import { Notices } from './summary-notices.js';
import { collapsed } from '../notices.js';
import type { Bars, Block, FindingItem, Section, Table, View } from '../../views/block.js';
import { withExplanation } from '../../views/explain.js';
import type { Places } from '../../views/findings.js';
import { explained } from '../reasons.js';
import { safeText } from '../safe-text.js';
import { plainText, rawValue } from '../value.js';
import { keepUnits } from '../../vocabulary/format.js';
import { Words } from './words.js';

interface PageOptions {
  /** Text of dist/report-client.js, which draws the charts. */
  clientScript: string;
  /** Text of dist/report-reading.js, for a page without charts. */
  readingScript?: string;
  /** Explanation shown first: sentences, waterfall, findings. */
  explain?: Document<ExplainResult> | null;
  /** Shown at the top if the page is one of several. */
  navigation?: Child;
  /** Links of findings and bars to their places. */
  places?: Places;
  /** Predictions shown in the waterfalls. */
  whatIf?: WhatIfResult;
  /** Run after the other scripts. */
  moreScripts?: readonly string[];
  /** Whether its scripts may send requests to their server. */
  asks?: boolean;
  /** A section before the others, with its script. */
  drawn?: { id: string; title: string; content: Child; script: string };
}

/** A view as one page without external files. */
export function pageOfView(
  view: View,
  { explain = null, places, whatIf, drawn, moreScripts = [], ...page }: PageOptions,
): string {
  const { session, document, title, command, lead, sections } = withExplanation(view, explain, {
    places,
    whatIf,
  });
  // Findings are to the right of their waterfall.
  const halves = sections
    .filter(({ half }) => half)
    .toSorted((a, b) => Number(a.id === 'findings') - Number(b.id === 'findings'));
  const html = (
    <Page
      title={`${title} · inferscope`}
      contents={[{ id: 'summary', title: 'Summary' }, ...(drawn ? [drawn] : []), ...sections]}
      moreScripts={drawn ? [drawn.script, ...moreScripts] : moreScripts}
      data={document}
      {...page}
    >
      <header id="summary">
        <p class="kicker">
          inferscope {command} · {session.id ?? 'not saved'} ·{' '}
          {session.started_at.slice(0, 16).replace('T', ' ')} UTC
        </p>
        <h1>{title}</h1>
        <Blocks blocks={lead} />
        <noscript>
          <p>The charts need JavaScript; every chart has its numbers in a table below it.</p>
        </noscript>
      </header>
      {halves.length > 0 && (
        <div class="halves">
          {halves.map((section) => (
            <SectionOfPage section={section} />
          ))}
        </div>
      )}
      {drawn && (
        <section id={drawn.id} aria-labelledby={`${drawn.id}-title`}>
          <h2 id={`${drawn.id}-title`}>{drawn.title}</h2>
          {drawn.content}
        </section>
      )}
      {sections
        .filter(({ half }) => !half)
        .map((section) => (
          <SectionOfPage section={section} />
        ))}
      <footer>
        inferscope {document.tool_version} · session {session.id ?? 'not saved'} · {session.started_at} · the
        page holds its data as {document.schema} JSON in <code>#profile-data</code>
      </footer>
    </Page>
  );
  return `<!DOCTYPE html>\n${String(html)}\n`;
}

/** One section of a page as HTML; null if the page has no such section. */
export function sectionOfView(
  view: View,
  id: string,
  { explain = null, places, whatIf }: Pick<PageOptions, 'explain' | 'places' | 'whatIf'>,
): string | null {
  const found = withExplanation(view, explain, { places, whatIf }).sections.find(
    (section) => section.id === id,
  );
  return found ? safeText(String(<SectionOfPage section={found} />)) : null;
}

/** A section with its heading. */
export const SectionOfPage: FC<{ section: Section }> = ({ section: { id, title, blocks } }) => (
  <section id={id} aria-labelledby={`${id}-title`}>
    <h2 id={`${id}-title`}>
      <a href={`#${id}`}>{title}</a>
    </h2>
    <Blocks blocks={blocks} />
  </section>
);

/** Blocks without a section. */
export const BlocksOfPage: FC<{ blocks: readonly Block[] }> = ({ blocks }) => <Blocks blocks={blocks} />;

const Blocks: FC<{ blocks: readonly Block[] }> = ({ blocks }) => (
  <>
    {inPairs(blocks.filter(({ summary }) => !summary)).map((run) =>
      run.length > 1 ? (
        <div class="two">
          {run.map((block) => (
            <div>
              <OneBlock block={block} />
            </div>
          ))}
        </div>
      ) : (
        run.map((block) => <OneBlock block={block} />)
      ),
    )}
  </>
);

/** Groups adjacent half-width charts in pairs; every other block is alone. */
function inPairs(blocks: readonly Block[]): Block[][] {
  const half = (block: Block | undefined): boolean => block?.type === 'chart' && block.half === true;
  const runs: Block[][] = [];
  for (const [index, block] of blocks.entries()) {
    if (half(block) && half(blocks[index - 1])) runs.at(-1)!.push(block);
    else runs.push([block]);
  }
  return runs;
}

const OneBlock: FC<{ block: Block }> = ({ block }) => {
  switch (block.type) {
    case 'headline':
      return (
        <>
          {block.sentences.length > 0 && (
            <ul class="help" aria-label="In short">
              {block.sentences.map((sentence) => (
                <li>{keepUnits(sentence)}</li>
              ))}
            </ul>
          )}
          {block.rows !== undefined && block.rows.length > 0 && (
            <table class="headline">
              <tbody>
                {block.rows.map(([name = '', ...cells]) => (
                  <tr>
                    <th scope="row">
                      <Words text={name} />
                    </th>
                    {cells.map((cell) => (
                      <td>
                        <Words text={cell} />
                      </td>
                    ))}
                  </tr>
                ))}
              </tbody>
            </table>
          )}
        </>
      );
    case 'bars':
      return <BarsBlock block={block} />;
    case 'findings':
      return (
        <ol class="findings">
          {block.items.map((item, index) => (
            <li id={item.id}>
              {index === 0 && !item.minor ? <FirstFinding item={item} /> : <Finding item={item} />}
              {item.place !== undefined && (
                <p class="place">
                  <Words text={item.place} />
                </p>
              )}
            </li>
          ))}
        </ol>
      );
    case 'lines':
      return <pre>{block.text}</pre>;
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
      return block.items.length === 0 ? null : (
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
      const { chart, label, behind, title } = block;
      return (
        <>
          {title !== undefined && <OneBlock block={{ type: 'heading', text: title }} />}
          <ChartFrame chart={chart} label={label}>
            <OneBlock block={behind} />
          </ChartFrame>
        </>
      );
    }
    case 'notes':
      return block.items.length === 0 ? null : (
        <ul class="notes">
          {block.items.map((item) => (
            <li>
              <Words text={item} />
            </li>
          ))}
        </ul>
      );
    case 'issues':
      return <Notices issues={collapsed(block.issues)} />;
    case 'missing':
      return <Absent what={block.what} why={block.why} />;
    case 'commands':
      return (
        <ul class="next">
          {block.items.map(({ command, why }) => (
            <li>
              <code>{command}</code>
              {why}
            </li>
          ))}
        </ul>
      );
    case 'fold':
      return (
        <Behind title={block.title}>
          <Blocks blocks={block.blocks} />
        </Behind>
      );
  }
};

const BarsBlock: FC<{ block: Bars }> = ({ block: { title, sides, difference, behind } }) => {
  const [first, second] = sides;
  const titled = (label: string): string => `${label}. ${plainText(title)}`;
  return (
    <div>
      <h3>
        <Words text={title} />
      </h3>
      {second ? (
        <>
          <div class="sides">
            {[...sides.map(({ pageChart: drawn }) => drawn), ...(difference ? [difference] : [])].map(
              ({ label, chart }) => (
                <div>
                  <p>{label}</p>
                  <ChartFrame chart={chart} label={titled(label)} />
                </div>
              ),
            )}
          </div>
          <OneBlock block={behind} />
        </>
      ) : (
        first && (
          <ChartFrame chart={first.pageChart.chart} label={titled(first.pageChart.label)}>
            <OneBlock block={behind} />
          </ChartFrame>
        )
      )}
    </div>
  );
};

/** While closed, it shows its change and expected gain. */
const FirstFinding: FC<{ item: FindingItem }> = ({ item }) => (
  <>
    <Finding item={plainText(item.expected) === '' ? item : { ...item, gain: '' }} />
    <div class="brief">
      <p>{item.change}</p>
      <p class="expected">
        <Words text={item.expected} />
      </p>
    </div>
  </>
);

const Finding: FC<{ item: FindingItem }> = ({ item: { severity, title, gain, facts, blocks } }) => (
  <details>
    <summary>
      <strong class={`severity ${severity}`}>{severity}</strong> {keepUnits(title)}
      {plainText(gain) !== '' && <span class="stake"> ({plainText(gain)})</span>}
    </summary>
    <dl class="definitions">
      {facts.map((fact) => (
        <>
          <dt>{fact.name}</dt>
          <dd>{'lines' in fact ? <pre>{fact.lines}</pre> : <Words text={fact.text} />}</dd>
        </>
      ))}
    </dl>
    <Blocks blocks={blocks} />
  </details>
);

/** Above this number of columns, those that a narrow terminal drops first are hidden until requested. */
const maxColumns = 7;

function hiddenColumns(columns: Table['columns']): Set<Table['columns'][number]> {
  const hidden = new Set(columns.filter(({ detail }) => detail));
  const droppable = columns
    .filter((column) => column.drop !== undefined && !hidden.has(column))
    .toSorted((a, b) => a.drop! - b.drop!);
  for (const column of droppable.slice(0, Math.max(0, columns.length - hidden.size - maxColumns)))
    hidden.add(column);
  return hidden;
}

/** A table, sortable if it has several rows. */
const TableBlock: FC<{ table: Table }> = ({ table }) => {
  const { columns, rows, notes } = explained(table);
  const below = notes();
  const hidden = hiddenColumns(columns);
  return (
    <>
      {(rows.length > 0 || below.length === 0) && (
        <DataTable
          caption={plainText(table.title)}
          columns={columns.map((column) => ({
            head: column.head,
            ...(column.numeric ? { numeric: true as const } : {}),
            ...(column.wraps ? { wraps: true as const } : {}),
            ...(hidden.has(column) ? { detail: true } : {}),
          }))}
          rows={rows.map(({ cells }) => cells.map((cell) => <Words text={cell} />))}
          {...(rows.length > 2 && columns.some(({ numeric }) => numeric)
            ? { sortKeys: rows.map(({ cells }) => cells.map(rawValue)) }
            : {})}
          {...(table.filter ? { filter: true } : {})}
        />
      )}
      {below.length > 0 && (
        <ul class="notes">
          {below.map((note) => (
            <li>{note}</li>
          ))}
        </ul>
      )}
    </>
  );
};

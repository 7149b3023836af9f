import type { FC } from 'hono/jsx';
import type { Bars, Block, FindingItem, Table } from '../../views/block.js';
import { commandParts } from '../../views/text.js';
import { keepUnits } from '../../vocabulary/format.js';
import { mergeIssues } from '../notices.js';
import { tableToDraw } from '../reasons.js';
import { plainText, rawValue } from '../value.js';
import { Absent, Behind, ChartFrame, DataTable } from './parts.js';
import { Notices } from './summary-notices.js';
import { Words } from './words.js';

/** Blocks of a page, charts of half the width in pairs. @param under the heading above them */
export const Blocks: FC<{ blocks: readonly Block[]; under?: string }> = ({ blocks, under = '' }) => {
  const shown = joinFacts(blocks.filter(({ summary, pages }) => !summary && pages !== false));
  const repeating = repeatingHeading(shown, under);
  return (
    <>
      {inPairs(shown).map((run) =>
        run.length > 1 ? (
          <div class="two">
            {run.map((block) => (
              <div>
                <OneBlock block={block} />
              </div>
            ))}
          </div>
        ) : (
          run.map((block) => <OneBlock block={block} repeatsHeading={repeating.has(block)} />)
        ),
      )}
    </>
  );
};

/** Adjacent facts as one list, so that their texts start in one column. */
function joinFacts(blocks: readonly Block[]): Block[] {
  const joined: Block[] = [];
  for (const block of blocks) {
    const above = joined.at(-1);
    if (block.type === 'facts' && above?.type === 'facts')
      joined[joined.length - 1] = { ...above, items: [...above.items, ...block.items] };
    else joined.push(block);
  }
  return joined;
}

/** Tables with the title of the heading above them. */
function repeatingHeading(blocks: readonly Block[], under: string): Set<Block> {
  let heading = under;
  return new Set(
    blocks.filter((block) => {
      if (block.type === 'heading') heading = plainText(block.text);
      return block.type === 'table' && plainText(block.title) === heading;
    }),
  );
}

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

const OneBlock: FC<{ block: Block; repeatsHeading?: boolean }> = ({ block, repeatsHeading = false }) => {
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
      return <TableBlock table={block} repeatsHeading={repeatsHeading} />;
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
      return <Notices issues={mergeIssues(block.issues)} />;
    case 'missing':
      return <Absent what={block.what} why={block.why} />;
    case 'commands':
      return (
        <ul class="next">
          {block.items.map(({ command, why }) => (
            <li>
              <Words text={commandParts(command)} />
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
  const charts = [...sides.map(({ pageChart }) => pageChart), ...(difference ? [difference] : [])];
  const [first, second] = charts;
  const titled = (label: string): string => `${label}. ${plainText(title)}`;
  return (
    <div>
      <h3>
        <Words text={title} />
      </h3>
      {second ? (
        <>
          <div class="sides">
            {charts.map(({ label, chart }) => (
              <div>
                <p>{label}</p>
                <ChartFrame chart={chart} label={titled(label)} />
              </div>
            ))}
          </div>
          <Behind title="Table behind these charts">
            <OneBlock block={behind} />
          </Behind>
        </>
      ) : (
        first && (
          <ChartFrame chart={first.chart} label={titled(first.label)}>
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
const TableBlock: FC<{ table: Table; repeatsHeading: boolean }> = ({ table, repeatsHeading }) => {
  const { columns, rows, notes } = tableToDraw(table);
  const hidden = hiddenColumns(columns);
  const below = notes();
  const brief = notes([...hidden].map(({ head }) => head));
  return (
    <>
      {(rows.length > 0 || below.length === 0) && (
        <DataTable
          caption={plainText(table.title)}
          repeatsHeading={repeatsHeading}
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
      {below.length > 0 && <TableNotes all={below} brief={brief} />}
    </>
  );
};

/** Notes below a table: `brief` until all columns are shown. */
const TableNotes: FC<{ all: readonly string[]; brief: readonly string[] }> = ({ all, brief }) => (
  <ul class="notes">
    {all.map((note) => (
      <li {...(brief.includes(note) ? {} : { class: 'detail' })}>{note}</li>
    ))}
    {brief
      .filter((note) => !all.includes(note))
      .map((note) => (
        <li class="undetailed">{note}</li>
      ))}
  </ul>
);

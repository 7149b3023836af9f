import type { FC } from 'hono/jsx';
import type { KernelOrigin, NamedKernel } from '../facts/trace/kernel-instances.js';
import type { OpClass } from '../model/classes.js';
import { safeText } from '../render/safe-text.js';
import { classColors } from '../vocabulary/colours.js';
import { formatCount, formatNs, formatPart, formatPercent, plural } from '../vocabulary/format.js';
import { classLabel } from '../vocabulary/op-classes.js';
import { stageLabels } from '../vocabulary/stages.js';
import { html, type SessionNamed, Shell } from './pages.js';
import { sessionPath } from './session-path.js';

/** Columns that sort: by name from A on, by numbers from the largest on. */
const columns = {
  name: {
    label: 'Kernel',
    of: ({ short_name }: NamedKernel) => short_name,
    text: ({ short_name }: NamedKernel) => short_name,
  },
  class: {
    label: 'Class',
    of: (row: NamedKernel) => classLabel(row.class),
    text: (row: NamedKernel) => classLabel(row.class),
  },
  count: {
    label: 'Launches',
    of: ({ count }: NamedKernel) => count,
    text: ({ count }: NamedKernel) => formatCount(count),
  },
  total: {
    label: 'Total',
    of: ({ total_ns }: NamedKernel) => total_ns,
    text: (row: NamedKernel) => formatNs(row.total_ns),
  },
  share: {
    label: 'Share',
    of: ({ share }: NamedKernel) => share,
    text: (row: NamedKernel) => formatPercent(row.share),
  },
  median: {
    label: 'Median',
    of: (row: NamedKernel) => row.median_ns,
    text: (row: NamedKernel) => formatNs(row.median_ns),
  },
  max: {
    label: 'Max',
    of: (row: NamedKernel) => row.max_ns,
    text: (row: NamedKernel) => formatNs(row.max_ns),
  },
};
type Column = keyof typeof columns;

export interface KernelsShown {
  session: SessionNamed;
  hasTimeline: boolean;
  /** What is shown: one rank and device of one execution. */
  shown: { execution: string; rank: number | null; device: number | null };
  /** All names, those with the most time first. */
  kernels: readonly NamedKernel[];
  origins: readonly KernelOrigin[];
  sort: string;
  filter: string;
  /** Name of the kernel that is chosen; '' for none. */
  chosen: string;
  /** From 1. */
  page: number;
}

const rowsPerPage = 200;

/** Kernels of the rank and device that the session's explanation is about; state is in the address, without a script. */
export const kernelsPage = (asked: KernelsShown): string => {
  const { session, hasTimeline, kernels, filter, chosen } = asked;
  const sort: Column = Object.hasOwn(columns, asked.sort) ? (asked.sort as Column) : 'total';
  const path = sessionPath(session.id, '/kernels');
  const address = (change: { sort?: string; kernel?: string; page?: string }): string => {
    const state = {
      sort,
      q: filter,
      kernel: chosen,
      ...(change.kernel && page > 1 ? { page: String(page) } : {}),
      ...change,
    };
    const query = Object.entries(state).filter(([, value]) => value !== '');
    return `${path}?${new URLSearchParams(query)}${change.kernel ? '#chosen' : ''}`;
  };
  const total = kernels.reduce((sum, { total_ns }) => sum + total_ns, 0);
  const launches = kernels.reduce((sum, { count }) => sum + count, 0);
  const { rank, device } = asked.shown;
  const wanted = filter.trim().toLowerCase();
  const found = kernels.filter((row) =>
    `${row.name} ${classLabel(row.class)}`.toLowerCase().includes(wanted),
  );
  const key = columns[sort].of;
  const rows = found.toSorted((a, b) => {
    const [x, y] = [key(a), key(b)];
    return typeof x === 'number' ? Number(y) - x : x.localeCompare(String(y), 'en');
  });
  const pages = Math.max(1, Math.ceil(rows.length / rowsPerPage));
  const page = Math.min(pages, Math.max(1, Math.floor(asked.page) || 1));
  return html(
    <Shell title={`Kernels: ${session.title}`} navigation={{ session, current: path, hasTimeline }}>
      <section>
        <h1>Kernels</h1>
        <p>
          {plural(launches, 'launch', 'launches')} of {plural(kernels.length, 'kernel')}, {formatNs(total)} in
          total
          {rank === null ? '' : `, rank ${rank}`}
          {device === null ? '' : `, GPU ${device}`}.
        </p>
        <Icicle origins={asked.origins} total={total} linkTo={(kernel) => address({ kernel })} />
      </section>
      {kernels
        .filter(({ name }) => chosen !== '' && name === chosen)
        .map((kernel) => (
          <Chosen {...asked} kernel={kernel} />
        ))}
      <section>
        <form action={path} method="get" class="tools">
          <input type="hidden" name="sort" value={sort} />
          {chosen !== '' && <input type="hidden" name="kernel" value={chosen} />}
          <label>
            <input type="search" name="q" value={filter} placeholder="name, class" /> filter
          </label>
          <button type="submit">Filter</button>
          <output>
            {wanted !== '' &&
              `${plural(rows.length, 'kernel')}, ${formatPart(
                rows.reduce((sum, row) => sum + row.total_ns, 0),
                total,
              )} of kernel time`}
          </output>
        </form>
        <div class="scroll whole">
          <table class="whole stacks" id="kernels">
            <thead>
              <tr>
                {Object.entries(columns).map(([id, { label }]) => (
                  <th
                    scope="col"
                    class={isNumber(id) ? 'number' : ''}
                    {...(id === sort ? { 'aria-sort': isNumber(id) ? 'descending' : 'ascending' } : {})}
                  >
                    <a href={address({ sort: id })}>{label}</a>
                    {id === sort && (isNumber(id) ? ' ▾' : ' ▴')}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.slice(rowsPerPage * (page - 1), rowsPerPage * page).map((row) => (
                <tr {...(row.name === chosen ? { 'aria-current': 'true' } : {})}>
                  <td class="wraps">
                    <a href={address({ kernel: row.name })} title={safeText(row.name)}>
                      {safeText(row.short_name) || 'without a name'}
                    </a>
                  </td>
                  <td data-head={columns.class.label}>
                    <span>
                      <span class={`swatch c-${row.class}`} />
                      {classLabel(row.class)}
                    </span>
                  </td>
                  {Object.entries(columns)
                    .filter(([id]) => isNumber(id))
                    .map(([, { label, text }]) => (
                      <td class="number" data-head={label}>
                        {text(row)}
                      </td>
                    ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
        {pages > 1 && (
          <p class="tools" id="pages">
            {page > 1 && <a href={address({ page: String(page - 1) })}>previous</a>}
            <span>
              page {page} of {pages}
            </span>
            {page < pages && <a href={address({ page: String(page + 1) })}>next</a>}
          </p>
        )}
      </section>
    </Shell>,
  );
};

const isNumber = (column: string): boolean => column !== 'name' && column !== 'class';

/** CSS of where a part of a picture starts and how wide it is, as shares of the picture's width. */
const across = (start: number, width: number): string =>
  `left: calc(${start} * 100%); width: calc(${width} * 100%)`;

/** How long the launches of one kernel take, and the way to the longest. */
const Chosen: FC<KernelsShown & { kernel: NamedKernel }> = ({ session, shown, kernel }) => {
  const { longest, bins, min_ns, max_ns } = kernel;
  const most = Math.max(...bins);
  const width = (max_ns - min_ns) / bins.length;
  const around = 10 * max_ns;
  const query = new URLSearchParams({
    execution: shown.execution,
    start: String(longest.start_ns - around),
    end: String(longest.end_ns + around),
    mark: `${longest.start_ns},${longest.end_ns}`,
  });
  const colour = classColors[kernel.class];
  const figures: [string, string][] = [
    ['launches', formatCount(kernel.count)],
    ['total', formatNs(kernel.total_ns)],
    ['min', formatNs(min_ns)],
    ['median', formatNs(kernel.median_ns)],
    ['p95', formatNs(kernel.p95_ns)],
    ['max', formatNs(max_ns)],
  ];
  return (
    <section id="chosen">
      <h2>{safeText(kernel.name) || 'without a name'}</h2>
      <dl class="figures">
        {figures.map(([label, text]) => (
          <div>
            <dt>{label}</dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
      <svg
        class="histogram"
        viewBox={`0 0 ${bins.length} ${most}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`launches by duration, ${formatNs(min_ns)} to ${formatNs(max_ns)}`}
      >
        {bins.map((count, at) => (
          <rect x={at} y={most - count} width="1" height={count} fill={colour}>
            <title>{`${formatNs(min_ns + at * width)} to ${formatNs(min_ns + (at + 1) * width)}: ${plural(count, 'launch', 'launches')}`}</title>
          </rect>
        ))}
      </svg>
      <p class="ends spread">
        <span>{formatNs(min_ns)}</span>
        <span>at most {plural(most, 'launch', 'launches')} per bar</span>
        <span>{formatNs(max_ns)}</span>
      </p>
      <p>
        <a href={`${sessionPath(session.id, '/timeline')}?${query}`}>longest launch in the timeline</a>
      </p>
    </section>
  );
};

interface Part {
  label: string;
  title: string;
  x: number;
  ns: number;
  /** Class of all its kernels; null where they have several. */
  fill: OpClass | null;
  kernel: string | null;
}

/** Of all kernel time: narrower parts have no mark of their own; the part above shows their time. */
const narrowest = 0.001;

/** Phase over operator over kernel, each as wide as its kernels' time. Without operators, class over kernel. */
const Icicle: FC<{ origins: readonly KernelOrigin[]; total: number; linkTo: (kernel: string) => string }> = ({
  origins,
  total,
  linkTo,
}) => {
  const hasOperators = origins.some(({ operator }) => operator !== null);
  const keys: ((one: KernelOrigin) => string)[] = [
    ({ phase }) => stageLabels[phase] ?? phase,
    (one) => (hasOperators ? (one.operator ?? 'no operator') : classLabel(one.class ?? 'other')),
    ({ kernel }) => kernel,
  ];
  const levels: Part[][] = keys.map(() => []);
  const place = (own: readonly KernelOrigin[], depth: number, x: number): void => {
    const key = keys[depth];
    if (!key) return;
    const groups = new Map<string, KernelOrigin[]>();
    for (const one of own) {
      const group = groups.get(key(one));
      if (group) group.push(one);
      else groups.set(key(one), [one]);
    }
    const sums = [...groups].map(([label, of]) => ({
      label,
      of,
      ns: of.reduce((sum, one) => sum + one.total_ns, 0),
    }));
    let left = x;
    for (const { label, of, ns } of sums.toSorted((a, b) => b.ns - a.ns)) {
      const kernel = depth === keys.length - 1 ? label : null;
      const classes = new Set(of.map((one) => one.class ?? 'other'));
      if (ns >= narrowest * total) {
        const name = safeText(label) || 'without a name';
        const count = of.reduce((sum, one) => sum + one.count, 0);
        levels[depth]!.push({
          label: kernel === null ? name : shortName(name),
          title: `${name}: ${formatNs(ns)} (${formatPart(ns, total)}), ${plural(count, 'launch', 'launches')}`,
          x: left,
          ns,
          fill: depth > 0 && classes.size === 1 ? [...classes][0]! : null,
          kernel,
        });
        place(of, depth + 1, left);
      }
      left += ns;
    }
  };
  place(origins, 0, 0);
  if (!(total > 0)) return <></>;
  return (
    <>
      <p class="spread">
        Kernel time by stage, {hasOperators ? 'operator' : 'class'} and kernel. Parts below{' '}
        {formatPercent(narrowest)} are left blank.
      </p>
      <div class="icicle" role="group" aria-label="kernel time by origin">
        {levels.flatMap((parts, depth) =>
          parts.map(({ label, title, x, ns, fill, kernel }) => {
            const box = {
              class: `level-${depth} ${fill === null ? '' : `c-${fill}`}`,
              style: across(x / total, ns / total),
              title,
            };
            const text = ns > 0.03 * total ? label : '';
            return kernel === null ? (
              <span {...box}>{text}</span>
            ) : (
              <a {...box} href={linkTo(kernel)} aria-label={title}>
                {text}
              </a>
            );
          }),
        )}
      </div>
    </>
  );
};

/** Without return type, namespaces and arguments, which come first or last in a full name. */
const shortName = (name: string): string =>
  name
    .replace(/^void /, '')
    .replace(/[<(].*$/s, '')
    .replace(/^.*::/, '') || name;

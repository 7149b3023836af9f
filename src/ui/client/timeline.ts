import { formatTimeTick } from '../../vocabulary/format.js';
import { safeText } from '../../render/safe-text.js';
import { draw, type Scene } from './draw.js';
import { bindGroupKeys } from './groups.js';
import { bindKeys } from './keys.js';
import { byId, element, eventPanel } from './panel.js';
import { bindPointers } from './pointers.js';
import { Range } from './range.js';
import { layoutOf } from './rows.js';
import { SelectionPanel } from './selection.js';
import type { TimelineSource } from './source.js';
import { fillStepPicker } from './step-picker.js';
import { resolveColor, themeOf } from './theme.js';
import { Tiles } from './tiles.js';

const box = byId('timeline');
const canvas = box.querySelector('canvas')!;
const context = canvas.getContext('2d', { alpha: false })!;
const status = byId('status');
const details = byId('event');

const failed = (error: unknown): void => {
  status.textContent = error instanceof Error ? error.message : String(error);
};

/** The same label can name an API call and the idle time during it, so the legend has two parts. */
const legendParts = [
  { head: 'stages', tables: ['stages'] },
  { head: 'kernels, copies, operators', tables: ['kernels', 'copies', 'ops'] },
  { head: 'idle', tables: ['gaps'] },
  { head: 'API calls', tables: ['api_calls'] },
];

export const showTimeline = (source: TimelineSource): void => void start(source).catch(failed);

async function start(source: TimelineSource): Promise<void> {
  let shown = await source.timeline(0);
  const counters = await source.counters();
  const labels = shown.labels.map((label) => safeText(label));
  const range = new Range(Math.max(1, shown.span));
  /** Keys of collapsed groups. */
  const closed = new Set<string>();
  const tiles = new Tiles(source, () => redraw(), failed);
  const scene: Scene = {
    width: 0,
    height: 0,
    gutter: 0,
    range,
    layout: layoutOf(shown, counters, closed),
    tiles,
    colors: {},
    labels,
    theme: themeOf(),
    selected: null,
    event: null,
    launch: null,
    head: null,
  };

  let waiting = 0;
  const redraw = (): void => {
    if (waiting !== 0) return;
    waiting = requestAnimationFrame(() => {
      waiting = 0;
      draw(context, scene);
      box.dataset['drawn'] = String(Number(box.dataset['drawn'] ?? 0) + 1);
    });
  };
  const fitCanvas = (): void => {
    scene.width = box.clientWidth;
    scene.gutter = scene.width < 600 ? 84 : 170;
    scene.height = Math.max(scene.layout.height + 4, 120);
    const ratio = devicePixelRatio;
    canvas.width = Math.round(scene.width * ratio);
    canvas.height = Math.round(scene.height * ratio);
    canvas.style.width = `${scene.width}px`;
    canvas.style.height = `${scene.height}px`;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    redraw();
  };
  const paint = (): void => {
    scene.theme = themeOf();
    scene.colors = Object.fromEntries(
      Object.entries(shown.classes).map(([table, classes]) => [
        table,
        classes.map(({ color }) => resolveColor(color)),
      ]),
    );
    redraw();
  };
  const legend = (): void => {
    byId('legend').replaceChildren(
      ...legendParts.flatMap(({ head, tables }) => {
        const present = new Map<string, string>();
        for (const { table, classes } of shown.tracks)
          for (const number of tables.includes(table) ? classes : [])
            present.set(shown.classes[table]![number]!.label, shown.classes[table]![number]!.color);
        const swatches = [...present].map(([label, color]) =>
          element('span', {}, element('span', { class: 'swatch', style: `background:${color}` }), label),
        );
        return swatches.length === 0 ? [] : [element('p', {}, element('b', {}, head), ...swatches)];
      }),
    );
  };

  /** Updates the rows after data arrived or a group was toggled. */
  const arrange = (): void => {
    scene.layout = layoutOf(shown, counters, closed);
    fitCanvas();
  };
  const toggle = (key: string): void => {
    if (!closed.delete(key)) closed.add(key);
    arrange();
    moved();
  };
  /** Collapses all groups except the one of the selected event (or the first); expands all if any is collapsed. */
  const closeOthers = (): void => {
    const { heads } = scene.layout;
    if (closed.size > 0) closed.clear();
    else {
      const ranks = heads.filter(({ depth }) => depth === 0);
      const lane = scene.layout.lanes.find((row) => row.lane === scene.event?.lane);
      const rank = ranks.findLast(({ top }) => lane !== undefined && top <= lane.top) ?? ranks[0];
      for (const { key } of ranks) if (key !== rank?.key) closed.add(key);
    }
    arrange();
  };

  paint();
  legend();
  fitCanvas();
  addEventListener('resize', fitCanvas);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', paint);

  // Stores the state of the page in its URL.
  const remember = (): void => {
    const search = new URLSearchParams({
      start: String(Math.round(shown.zero + range.start)),
      end: String(Math.round(shown.zero + range.end)),
    });
    if (scene.selected) {
      const { start, end } = scene.selected;
      search.set('mark', [start, end].map((ns) => Math.round(shown.zero + ns)).join(','));
      for (const [name, value] of selection.state) search.set(name, value);
    }
    if (event) search.set('event', `${event.lane},${event.index}`);
    if (closed.size > 0) search.set('closed', [...closed].join(','));
    source.address.write(search);
  };
  let remembering: ReturnType<typeof setTimeout> | undefined;
  const moved = (): void => {
    redraw();
    clearTimeout(remembering);
    remembering = setTimeout(remember, 150);
  };
  const goTo = (from: number, to: number, room = 0.15): void => {
    const width = Math.max(to - from, 100);
    range.show(from - room * width, to + room * width);
    moved();
  };

  // The selected event, shown with its launch or the kernel that it launched.
  let event: { lane: number; index: number } | null = null;
  const select = async (lane: number, index: number, show: boolean): Promise<void> => {
    const eventDetails = await source.event({ lane, index });
    if (!eventDetails) return;
    event = { lane, index };
    scene.event = { lane, start: eventDetails.start, end: eventDetails.end };
    scene.launch = eventDetails.launch && {
      lane: eventDetails.launch.place.lane,
      start: eventDetails.launch.start,
      end: eventDetails.launch.end,
    };
    const times = `${formatTimeTick(eventDetails.end - eventDetails.start, Math.max(1, (eventDetails.end - eventDetails.start) / 100))}, from ${formatTimeTick(eventDetails.start, Math.max(1, (eventDetails.end - eventDetails.start) / 10))}`;
    details.replaceChildren(
      ...eventPanel(
        eventDetails,
        times,
        eventDetails.named ? source.pageOf?.(eventDetails.named) : undefined,
        () => {
          const { launch } = eventDetails;
          if (launch) void select(launch.place.lane, launch.place.index, true).catch(failed);
        },
      ),
      ...(eventDetails.facts.length === 0 ? [element('p', { class: 'hint' }, source.note)] : []),
    );
    // Expands groups if the selected event is in a collapsed one.
    if (closed.size > 0 && !scene.layout.lanes.some((laneRow) => laneRow.lane === lane)) {
      closed.clear();
      arrange();
    }
    if (show) {
      if (
        eventDetails.start < range.start ||
        eventDetails.end > range.end ||
        eventDetails.end - eventDetails.start < range.width / 200
      )
        goTo(eventDetails.start, eventDetails.end, 8);
      const row = scene.layout.lanes.find((laneRow) => laneRow.lane === lane);
      if (row && (row.top < box.scrollTop || row.top > box.scrollTop + box.clientHeight - 20))
        box.scrollTop = Math.max(0, row.top - box.clientHeight / 2);
    }
    moved();
  };
  const leaveEvent = (): void => {
    event = scene.event = scene.launch = null;
    details.replaceChildren();
  };
  const selection = new SelectionPanel({
    source,
    timeline: () => shown,
    follow: ({ lane, index }) => {
      void select(lane, index, true).catch(failed);
      box.scrollIntoView({ block: 'nearest' });
    },
    changed: () => moved(),
    failed,
  });
  const sumUp = (query?: URLSearchParams): void => {
    if (scene.selected)
      void selection
        .show(scene.selected, query)
        // A link from a kernel name selects the only event, so that its launch is shown too.
        .then((only) => (query && only && !event ? select(only.lane, only.index, false) : moved()))
        .catch(failed);
  };

  const measure = bindPointers({
    box,
    canvas,
    scene,
    redraw,
    moved,
    select: (lane, index) => void select(lane, index, false).catch(failed),
    selected: () => {
      leaveEvent();
      sumUp();
    },
    toggle,
  });

  bindGroupKeys({
    box,
    scene,
    toggle,
    redraw,
    report: (text) => (status.textContent = text === '' ? source.note : text),
  });

  const search = byId<HTMLInputElement>('search');
  const find = async (direction: 'next' | 'previous'): Promise<void> => {
    const fromNs = scene.event ? scene.event.start : range.start;
    const found = await source.find(search.value, fromNs);
    byId('found').textContent = `${found.count} found`;
    const match = found[direction];
    if (match) await select(match.lane, match.index, true);
  };
  search.addEventListener('keydown', (key) => {
    if (key.key === 'Enter' && search.value.trim() !== '')
      void find(key.shiftKey ? 'previous' : 'next').catch(failed);
    if (key.key === 'Escape') box.focus();
  });

  bindKeys(source.keys, moved, {
    w: () => range.zoom(0.7, 0.5),
    s: () => range.zoom(1 / 0.7, 0.5),
    a: () => range.move(-0.15),
    d: () => range.move(0.15),
    ArrowLeft: () => range.move(-0.15),
    ArrowRight: () => range.move(0.15),
    f: () => range.show(0, range.span),
    m: measure,
    c: closeOthers,
    n: () => void find('next').catch(failed),
    N: () => void find('previous').catch(failed),
    '/': () => search.focus(),
    v: () => {
      scene.selected = { start: range.start, end: range.end };
      leaveEvent();
      sumUp();
    },
    Escape: () => {
      leaveEvent();
      scene.selected = null;
      selection.clear();
    },
  });

  const namedEvent = source.address.read().get('event');
  showAddress();
  await fillStepPicker(source, goTo);
  await follow();
  await showNamed(namedEvent);
  remember();
  source.address.follow(() => {
    showAddress();
    void showNamed(source.address.read().get('event')).catch(failed);
  });
  box.dataset['ready'] = 'true';

  /** Shows the time range and event in the URL. */
  function showAddress(): void {
    const query = source.address.read();
    const number = (name: string): number | null =>
      query.has(name) ? Number(query.get(name)) - shown.zero : null;
    const [from, to] = [number('start'), number('end')];
    const mark = query
      .get('mark')
      ?.split(',')
      .map((ns) => Number(ns) - shown.zero);
    closed.clear();
    for (const key of query.get('closed')?.split(',') ?? []) closed.add(key);
    arrange();
    scene.selected = mark ? { start: mark[0]!, end: mark[1]! } : null;
    if (from !== null && to !== null && to > from) range.show(from, to);
    redraw();
  }

  /** Selects the event in the URL after all lanes have their numbers. */
  async function showNamed(named: string | null): Promise<void> {
    const [lane, index] = named?.split(',').map(Number) ?? [];
    if (lane !== undefined && index !== undefined) await select(lane, index, false);
    sumUp(source.address.read());
  }

  /** Draws the tracks of each table as it is loaded, until all are. */
  async function follow(): Promise<void> {
    while (shown.reading !== null) {
      status.textContent = `reading ${shown.reading.replace('_', ' ')} …`;
      await new Promise((resolve) => setTimeout(resolve, 250));
      const before = shown.tracks.length;
      shown = await source.timeline(labels.length);
      labels.push(...shown.labels.map((label) => safeText(label)));
      if (shown.tracks.length === before) continue;
      tiles.clear();
      legend();
      arrange();
    }
    status.textContent = source.note;
  }
}

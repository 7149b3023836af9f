import { formatTimeTick } from '../../vocabulary/format.js';
import { safeText } from '../../render/safe-text.js';
import { axisHeight, draw, hit, nsAt, type Scene } from './draw.js';
import { element, eventPanel, selectionPanel } from './panel.js';
import { Range } from './range.js';
import { layoutOf } from './rows.js';
import type { TimelineSource } from './source.js';
import { Tiles } from './tiles.js';

const byId = <T extends HTMLElement>(id: string): T => document.querySelector<T>(`#${id}`)!;
const box = byId('timeline');
const canvas = box.querySelector('canvas')!;
const context = canvas.getContext('2d', { alpha: false })!;
const status = byId('status');
const details = byId('details');

const failed = (error: unknown): void => {
  status.textContent = error instanceof Error ? error.message : String(error);
};

export const showTimeline = (source: TimelineSource): void => void start(source).catch(failed);

async function start(source: TimelineSource): Promise<void> {
  let shown = await source.timeline(0);
  const counters = await source.counters();
  const names = shown.names.map((name) => safeText(name));
  const range = new Range(Math.max(1, shown.span));
  const tiles = new Tiles(source, () => redraw(), failed);
  const scene: Scene = {
    width: 0,
    height: 0,
    gutter: 0,
    range,
    layout: layoutOf(shown, counters, axisHeight),
    tiles,
    colours: {},
    names,
    theme: themeOf(),
    selected: null,
    marked: null,
    event: null,
    launch: null,
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
    scene.colours = Object.fromEntries(
      Object.entries(shown.classes).map(([table, classes]) => [
        table,
        classes.map(({ colour }) => resolved(colour)),
      ]),
    );
    redraw();
  };
  const legend = (): void => {
    const present = new Map<string, string>();
    for (const { table, classes } of shown.tracks)
      for (const number of classes)
        present.set(shown.classes[table]![number]!.label, shown.classes[table]![number]!.colour);
    byId('legend').replaceChildren(
      ...[...present].map(([label, colour]) =>
        element('span', {}, element('span', { class: 'swatch', style: `background:${colour}` }), label),
      ),
    );
  };

  paint();
  legend();
  fitCanvas();
  addEventListener('resize', fitCanvas);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', paint);

  // The state of the page is its address.
  const remember = (): void => {
    const search = new URLSearchParams({
      start: String(Math.round(shown.zero + range.start)),
      end: String(Math.round(shown.zero + range.end)),
    });
    if (scene.marked)
      search.set(
        'mark',
        [scene.marked.start, scene.marked.end].map((ns) => Math.round(shown.zero + ns)).join(','),
      );
    if (event) search.set('event', `${event.lane},${event.index}`);
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

  // One event, and what launched it or what it launched.
  let event: { lane: number; index: number } | null = null;
  const select = async (lane: number, index: number, show: boolean): Promise<void> => {
    const found = await source.event({ lane, index });
    if (!found) return;
    event = { lane, index };
    scene.selected = null;
    scene.event = { lane, start: found.start, end: found.end };
    scene.launch = found.launch && {
      lane: found.launch.place.lane,
      start: found.launch.start,
      end: found.launch.end,
    };
    const times = `${formatTimeTick(found.end - found.start, Math.max(1, (found.end - found.start) / 100))}, from ${formatTimeTick(found.start, Math.max(1, (found.end - found.start) / 10))}`;
    details.replaceChildren(
      ...eventPanel(found, times, () => {
        const { launch } = found;
        if (launch) void select(launch.place.lane, launch.place.index, true).catch(failed);
      }),
      ...(found.facts.length === 0 ? [element('p', { class: 'hint' }, source.note)] : []),
    );
    if (show) {
      if (found.start < range.start || found.end > range.end || found.end - found.start < range.width / 200)
        goTo(found.start, found.end, 8);
      const row = scene.layout.lanes.find((one) => one.lane === lane);
      if (row && (row.top < box.scrollTop || row.top > box.scrollTop + box.clientHeight - 20))
        box.scrollTop = Math.max(0, row.top - box.clientHeight / 2);
    }
    moved();
  };
  const sumUp = async (from: number, to: number): Promise<void> => {
    const found = await source.selection(from, to);
    details.replaceChildren(
      ...selectionPanel(found, `${formatTimeTick(to - from, (to - from) / 100)} selected`),
    );
  };

  // Mouse and touch: drag moves, with Shift or in measuring it selects, a click shows an event.
  let measuring = false;
  const setMeasuring = (on: boolean): void => {
    measuring = on;
    byId('measure').setAttribute('aria-pressed', String(on));
  };
  let drag: {
    x: number;
    y: number;
    start: number;
    end: number;
    at: number;
    selects: boolean;
    moved: boolean;
  } | null = null;
  canvas.addEventListener('pointerdown', (pointer) => {
    if (pointer.button !== 0) return;
    canvas.setPointerCapture(pointer.pointerId);
    drag = {
      x: pointer.offsetX,
      y: pointer.clientY,
      start: range.start,
      end: range.end,
      at: nsAt(scene, pointer.offsetX),
      selects: pointer.shiftKey || measuring,
      moved: false,
    };
  });
  canvas.addEventListener('pointermove', (pointer) => {
    if (!drag) return;
    drag.moved ||= Math.abs(pointer.offsetX - drag.x) > 3;
    if (!drag.moved) return;
    if (drag.selects) {
      const at = nsAt(scene, Math.max(scene.gutter, Math.min(scene.width, pointer.offsetX)));
      scene.selected = {
        start: Math.max(0, Math.min(drag.at, at)),
        end: Math.min(range.span, Math.max(drag.at, at)),
      };
      redraw();
    } else {
      const by = ((drag.x - pointer.offsetX) / (scene.width - scene.gutter)) * (drag.end - drag.start);
      range.show(drag.start + by, drag.end + by);
      moved();
    }
  });
  canvas.addEventListener('pointerup', (pointer) => {
    const done = drag;
    drag = null;
    if (!done) return;
    if (!done.moved) {
      const found = hit(scene, pointer.offsetX, pointer.offsetY);
      if (found) void select(found.lane, found.index, false).catch(failed);
      return;
    }
    if (done.selects && scene.selected) void sumUp(scene.selected.start, scene.selected.end).catch(failed);
  });
  canvas.addEventListener('dblclick', (pointer) => {
    range.zoom(0.25, Math.max(0, (pointer.offsetX - scene.gutter) / (scene.width - scene.gutter)));
    moved();
  });
  box.addEventListener(
    'wheel',
    (wheel) => {
      // With Alt the picture scrolls down and up.
      if (wheel.altKey) return;
      wheel.preventDefault();
      if (wheel.shiftKey || Math.abs(wheel.deltaX) > Math.abs(wheel.deltaY))
        range.move((wheel.deltaX || wheel.deltaY) / 1000);
      else
        range.zoom(
          Math.exp(wheel.deltaY / 300),
          Math.max(0, (wheel.offsetX - scene.gutter) / (scene.width - scene.gutter)),
        );
      moved();
    },
    { passive: false },
  );

  const search = byId<HTMLInputElement>('search');
  const find = async (direction: 'next' | 'previous'): Promise<void> => {
    const at = scene.event ? scene.event.start : range.start;
    const found = await source.find(search.value, at);
    byId('found').textContent = `${found.count} found`;
    const match = found[direction];
    if (match) await select(match.lane, match.index, true);
  };
  search.addEventListener('keydown', (key) => {
    if (key.key === 'Enter' && search.value.trim() !== '')
      void find(key.shiftKey ? 'previous' : 'next').catch(failed);
    if (key.key === 'Escape') box.focus();
  });

  const fit = (): void => {
    range.show(0, range.span);
    moved();
  };
  const actions: Record<string, () => void> = {
    w: () => range.zoom(0.7, 0.5),
    s: () => range.zoom(1 / 0.7, 0.5),
    a: () => range.move(-0.15),
    d: () => range.move(0.15),
    ArrowLeft: () => range.move(-0.15),
    ArrowRight: () => range.move(0.15),
    f: fit,
    m: () => setMeasuring(!measuring),
    n: () => void find('next').catch(failed),
    N: () => void find('previous').catch(failed),
    Escape: () => {
      scene.selected = scene.event = scene.launch = scene.marked = null;
      event = null;
    },
  };
  source.keys.addEventListener('keydown', (pressed) => {
    const key = pressed as KeyboardEvent;
    if (
      key.ctrlKey ||
      key.metaKey ||
      key.altKey ||
      key.target instanceof HTMLInputElement ||
      key.target instanceof HTMLSelectElement
    )
      return;
    if (key.key === '/') {
      key.preventDefault();
      search.focus();
      return;
    }
    const action = actions[key.key];
    if (!action) return;
    key.preventDefault();
    action();
    moved();
  });
  for (const [id, key] of [
    ['fit', 'f'],
    ['zoom-in', 'w'],
    ['zoom-out', 's'],
    ['measure', 'm'],
  ] as const)
    byId(id).addEventListener('click', () => {
      actions[key]!();
      moved();
    });

  const namedEvent = source.address.read().get('event');
  showAddress();
  await steps(source, goTo);
  await follow();
  await showNamed(namedEvent);
  remember();
  source.address.follow(() => {
    showAddress();
    void showNamed(source.address.read().get('event')).catch(failed);
  });
  box.dataset['ready'] = 'true';

  /** Where the address leads: a time, an event. */
  function showAddress(): void {
    const asked = source.address.read();
    const number = (name: string): number | null =>
      asked.has(name) ? Number(asked.get(name)) - shown.zero : null;
    const [from, to] = [number('start'), number('end')];
    const mark = asked
      .get('mark')
      ?.split(',')
      .map((ns) => Number(ns) - shown.zero);
    if (mark) scene.marked = { start: mark[0]!, end: mark[1]! };
    if (from !== null && to !== null && to > from) range.show(from, to);
    redraw();
  }

  /** What the address names in it, once all lanes have their numbers. */
  async function showNamed(named: string | null): Promise<void> {
    const [lane, index] = named?.split(',').map(Number) ?? [];
    if (lane !== undefined && index !== undefined) await select(lane, index, false);
    else if (scene.marked) await sumUp(scene.marked.start, scene.marked.end);
  }

  /** Until all tables are read: their tracks are drawn as they come. */
  async function follow(): Promise<void> {
    while (shown.reading !== null) {
      status.textContent = `reading ${shown.reading.replace('_', ' ')} …`;
      await new Promise((resolve) => setTimeout(resolve, 250));
      const before = shown.tracks.length;
      shown = await source.timeline(names.length);
      names.push(...shown.names.map((name) => safeText(name)));
      if (shown.tracks.length === before) continue;
      scene.layout = layoutOf(shown, counters, axisHeight);
      tiles.clear();
      legend();
      fitCanvas();
    }
    status.textContent = source.note;
  }
}

/** The step picker: the median and the slowest step of each kind, and all in their order. */
async function steps(source: TimelineSource, goTo: (from: number, to: number) => void): Promise<void> {
  const kinds = await source.steps();
  const picker = byId<HTMLSelectElement>('step');
  const spans: { start: number; end: number }[] = [];
  for (const { label, count, list, median, slowest } of kinds) {
    const group = element('optgroup', { label: `${label} (${count})` });
    const add = (text: string, span: { start: number; end: number }): void => {
      group.append(element('option', { value: String(spans.length) }, text));
      spans.push(span);
    };
    const time = ({ start, end }: { start: number; end: number }) =>
      formatTimeTick(end - start, (end - start) / 100);
    add(`median, ${time(median)}`, median);
    add(`slowest, ${time(slowest)}`, slowest);
    for (const [number, span] of list.entries()) add(`${label} ${number + 1}, ${time(span)}`, span);
    picker.append(group);
  }
  const show = (): void => {
    const span = spans[Number(picker.value)];
    if (picker.value !== '' && span) goTo(span.start, span.end);
  };
  picker.addEventListener('change', show);
  const turn = (by: number) => () => {
    const next = picker.selectedIndex + by;
    if (next < 1 || next >= picker.options.length) return;
    picker.selectedIndex = next;
    show();
  };
  byId('step-next').addEventListener('click', turn(1));
  byId('step-previous').addEventListener('click', turn(-1));
}

function themeOf(): Scene['theme'] {
  const of = getComputedStyle(document.documentElement);
  const colour = (name: string): string => of.getPropertyValue(`--${name}`).trim();
  return {
    ink: colour('ink'),
    muted: colour('muted'),
    line: colour('line'),
    surface: colour('surface'),
    raised: colour('raised'),
    link: colour('link'),
  };
}

/** A color as a canvas takes it: one that follows the theme is what it is now. */
function resolved(colour: string): string {
  if (colour.startsWith('#')) return colour;
  const probe = element('span', { style: `color:${colour}` });
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

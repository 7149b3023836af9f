import { formatCount } from '../../vocabulary/format.js';
import { bindGroupKeys } from './groups.js';
import { bindKeys } from './keys.js';
import { byId } from './panel.js';
import { Picture } from './picture.js';
import { bindPointers } from './pointers.js';
import { SelectedEvent } from './selected-event.js';
import { SelectionPanel } from './selection.js';
import type { Counter, Steps } from '../timeline/shown.js';
import type { TimelineSource } from './source.js';
import { StepPicker } from './step-picker.js';

const status = byId('status');

const failed = (error: unknown): void => {
  status.textContent = error instanceof Error ? error.message : String(error);
};

export const showTimeline = (source: TimelineSource): void => void loadTimeline(source).catch(failed);

async function loadTimeline(source: TimelineSource): Promise<void> {
  // The events do not wait for the other two requests.
  const [counters, steps] = [source.counters(), source.steps()];
  for (const request of [counters, steps]) request.catch(() => {});
  const data = await source.timeline(0);
  const page = new TimelinePage(source, new Picture(data, source, failed, () => page.moved()));
  await page.start(counters, steps);
}

/** What the reader does on a timeline page, and the URL that stores it. */
class TimelinePage {
  private readonly event: SelectedEvent;
  private readonly selection: SelectionPanel;
  private readonly search = byId<HTMLInputElement>('search');
  private readonly steps = new StepPicker({
    show: (span) => (span ? this.goTo(span.start, span.end) : this.goTo(0, this.picture.scene.range.span, 0)),
    overlay: (step) => this.picture.overlay(step),
    changed: () => this.moved(),
  });
  private remembering: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly source: TimelineSource,
    private readonly picture: Picture,
  ) {
    this.event = new SelectedEvent({ source, picture, goTo: this.goTo, changed: this.moved, failed });
    this.selection = new SelectionPanel({
      source,
      timeline: () => picture.data,
      follow: (place) => {
        void this.event.select(place, true).catch(failed);
        picture.box.scrollIntoView({ block: 'nearest' });
      },
      changed: this.moved,
      failed,
    });
  }

  async start(counters: Promise<Counter[]>, steps: Promise<Steps[]>): Promise<void> {
    this.bindSearch();
    this.bindKeyboard(this.bindMouse());
    const named = this.source.address.read().get('event');
    this.showAddress();
    await Promise.all([
      this.followLoading(),
      counters.then((series) => this.picture.showCounters(series)),
      steps.then((kinds) => this.steps.fill(kinds)),
    ]);
    this.showSteps();
    await this.showNamed(named);
    this.remember();
    this.source.address.follow(() => {
      this.showAddress();
      this.showSteps();
      void this.showNamed(this.source.address.read().get('event')).catch(failed);
    });
    this.picture.box.dataset['ready'] = 'true';
  }

  /** Draws the changed state and stores it in the URL. */
  readonly moved = (): void => {
    this.picture.redraw();
    clearTimeout(this.remembering);
    this.remembering = setTimeout(() => this.remember(), 150);
  };

  /** @param room time to show on each side, as a share of the range */
  private readonly goTo = (from: number, to: number, room = 0.15): void => {
    const width = Math.max(to - from, 100);
    this.picture.scene.range.show(from - room * width, to + room * width);
    this.moved();
  };

  private readonly toggle = (key: string): void => {
    this.picture.toggle(key);
    this.moved();
  };

  /** @returns function that turns measuring mode on or off */
  private bindMouse(): () => void {
    const { box, canvas, scene, redraw } = this.picture;
    return bindPointers({
      box,
      canvas,
      scene,
      redraw,
      moved: this.moved,
      select: (place) => void this.event.select(place, false).catch(failed),
      selected: () => {
        this.event.leave();
        this.sumUp();
      },
      toggle: this.toggle,
    });
  }

  private bindKeyboard(measure: () => void): void {
    const { box, scene, redraw } = this.picture;
    const { range } = scene;
    bindGroupKeys({
      box,
      scene,
      toggle: this.toggle,
      redraw,
      report: (text) => (status.textContent = text === '' ? this.note : text),
    });
    bindKeys(this.source.keys, this.moved, {
      w: () => range.zoom(0.7, 0.5),
      s: () => range.zoom(1 / 0.7, 0.5),
      a: () => range.move(-0.15),
      d: () => range.move(0.15),
      ArrowLeft: () => range.move(-0.15),
      ArrowRight: () => range.move(0.15),
      f: () => range.show(0, range.span),
      z: () => {
        const span = scene.event ?? scene.selected;
        if (span) this.goTo(span.start, span.end);
      },
      ',': () => void this.event.step(-1).catch(failed),
      '.': () => void this.event.step(1).catch(failed),
      l: () => void this.event.followLaunch().catch(failed),
      m: measure,
      c: () => this.picture.closeOthers(),
      n: () => void this.find('next').catch(failed),
      N: () => void this.find('previous').catch(failed),
      '/': () => this.search.focus(),
      v: () => {
        scene.selected = { start: range.start, end: range.end };
        this.event.leave();
        this.sumUp();
      },
      Escape: () => {
        this.event.leave();
        scene.selected = null;
        this.selection.clear();
        this.picture.highlight = null;
      },
    });
  }

  private bindSearch(): void {
    this.search.addEventListener('keydown', (key) => {
      if (key.key === 'Enter' && this.search.value.trim() !== '')
        void this.find(key.shiftKey ? 'previous' : 'next').catch(failed);
      if (key.key === 'Escape') this.picture.box.focus();
    });
  }

  private async find(direction: 'next' | 'previous'): Promise<void> {
    const { event, range } = this.picture.scene;
    const found = await this.source.find(this.search.value, event ? event.start : range.start);
    byId('found').textContent = `${formatCount(found.count)} found`;
    const match = found[direction];
    if (match) await this.event.select(match, true);
  }

  /** Lists what is in the selected time range. @param query parameters of a URL that name the list */
  private sumUp(query?: URLSearchParams): void {
    const { selected } = this.picture.scene;
    if (!selected) return;
    void this.selection
      .show(selected, query)
      // A link from a kernel name selects the only event, so that its launch is shown too.
      .then((only) => (query && only && !this.event.place ? this.event.select(only, false) : this.moved()))
      .catch(failed);
  }

  /** Stores the state of the page in its URL. */
  private remember(): void {
    const { data, scene, closed } = this.picture;
    const time = (ns: number): string => String(Math.round(data.zero + ns));
    const search = new URLSearchParams({ start: time(scene.range.start), end: time(scene.range.end) });
    if (scene.selected) {
      search.set('mark', `${time(scene.selected.start)},${time(scene.selected.end)}`);
      for (const [name, value] of this.selection.state) search.set(name, value);
    }
    const { place } = this.event;
    if (place) search.set('event', `${place.lane},${place.index}`);
    const { step, overlay } = this.steps.state;
    if (step !== null) search.set('step', time(step));
    if (overlay !== null) search.set('overlay', time(overlay));
    if (this.picture.highlight) search.set('class', this.picture.highlight);
    if (closed.size > 0) search.set('closed', [...closed].join(','));
    this.source.address.write(search);
  }

  /** Shows the time range, selection and collapsed groups in the URL. */
  private showAddress(): void {
    const { data, scene, closed } = this.picture;
    const query = this.source.address.read();
    const timesOf = (text: string | null | undefined): number[] =>
      text?.split(',').map((ns) => Number(ns) - data.zero) ?? [];
    closed.clear();
    for (const key of query.get('closed')?.split(',') ?? []) closed.add(key);
    this.picture.arrange();
    this.picture.highlight = query.get('class');
    const [markStart, markEnd] = timesOf(query.get('mark'));
    scene.selected =
      markStart === undefined || markEnd === undefined ? null : { start: markStart, end: markEnd };
    const [[from], [to]] = [timesOf(query.get('start')), timesOf(query.get('end'))];
    if (from !== undefined && to !== undefined && to > from) scene.range.show(from, to);
    this.picture.redraw();
  }

  /** Chooses the steps in the URL after they are listed. */
  private showSteps(): void {
    const query = this.source.address.read();
    const startOf = (name: string): number | null =>
      query.has(name) ? Number(query.get(name)) - this.picture.data.zero : null;
    this.steps.state = { step: startOf('step'), overlay: startOf('overlay') };
  }

  /** Selects the event in the URL after all lanes have their numbers. */
  private async showNamed(named: string | null): Promise<void> {
    const [lane, index] = named?.split(',').map(Number) ?? [];
    if (lane !== undefined && index !== undefined) await this.event.select({ lane, index }, false);
    this.sumUp(this.source.address.read());
  }

  /** Draws the tracks of each table as it is loaded, until all are. */
  private async followLoading(): Promise<void> {
    const { picture, source } = this;
    // The server waits before it responds.
    while (picture.data.reading !== null) {
      status.textContent = `reading ${picture.data.reading.replace('_', ' ')} …`;
      picture.update(await source.timeline(picture.labelCount));
    }
    status.textContent = this.note;
  }

  /** What the timeline does not show; empty if nothing is missing. */
  private get note(): string {
    return this.picture.data.tracks.length === 0
      ? 'Only samples were recorded: no kernels, operators or stages.'
      : this.source.note;
  }
}

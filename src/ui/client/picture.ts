import { safeText } from '../../render/safe-text.js';
import type { Counter, TimelineData } from '../timeline/shown.js';
import { draw } from './draw.js';
import type { Scene } from './scene.js';
import { fitsGutter } from './labels.js';
import { colorsOf, type Highlight, legendRows } from './legend.js';
import { byId } from './panel.js';
import { Range } from './range.js';
import { layoutOf } from './rows.js';
import type { TimelineSource } from './source.js';
import type { OverlaidStep } from './step-picker.js';
import { resolveColor, themeOf } from './theme.js';
import { Tiles } from './tiles.js';

/** The canvas of a timeline with its rows, colors and legend. */
export class Picture {
  readonly box = byId('timeline');
  readonly canvas = this.box.querySelector('canvas')!;
  private readonly context = this.canvas.getContext('2d', { alpha: false })!;
  readonly scene: Scene;
  /** Keys of collapsed groups. */
  readonly closed = new Set<string>();
  private highlighted: Highlight = null;
  private readonly labels: string[];
  private counters: readonly Counter[] = [];
  /** Request of the next drawing; 0 if none is requested. */
  private frame = 0;

  constructor(
    private timelineData: TimelineData,
    source: TimelineSource,
    failed: (error: unknown) => void,
    /** Called after the reader highlighted another class. */
    private readonly changed: () => void,
  ) {
    this.labels = timelineData.labels.map((label) => safeText(label));
    this.scene = {
      width: 0,
      height: 0,
      gutter: 0,
      drawn: { top: 0, bottom: Infinity },
      range: new Range(Math.max(1, timelineData.span)),
      zero: timelineData.zero,
      layout: { lanes: [], heads: [], counters: [], constants: [], height: 0 },
      tiles: new Tiles(source, this.redraw, failed),
      colors: {},
      labels: this.labels,
      theme: themeOf(),
      overlay: null,
      selected: null,
      event: null,
      launch: null,
      head: null,
    };
    this.paint();
    this.showLegend();
    this.arrange();
    addEventListener('resize', this.arrange);
    this.box.addEventListener('scroll', this.redraw);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', this.paint);
    // Paper is light. The browser takes its picture before the next frame.
    matchMedia('print').addEventListener('change', () => {
      this.paint();
      this.scene.drawn = { top: 0, bottom: Infinity };
      draw(this.context, this.scene);
    });
  }

  get data(): TimelineData {
    return this.timelineData;
  }

  /** Number of labels that are known, as the next request for data names it. */
  get labelCount(): number {
    return this.labels.length;
  }

  /** Shows data with more tracks. */
  update(data: TimelineData): void {
    const before = this.timelineData.tracks.length;
    this.timelineData = data;
    this.labels.push(...data.labels.map((label) => safeText(label)));
    if (data.tracks.length === before) return;
    this.scene.tiles.clear();
    this.showLegend();
    this.arrange();
  }

  showCounters(counters: readonly Counter[]): void {
    this.counters = counters;
    this.arrange();
  }

  /** Draws at the next frame. */
  readonly redraw = (): void => {
    if (this.frame !== 0) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      // One more screen above and below: a fast scroll does not show empty rows.
      const { scrollTop, clientHeight } = this.box;
      this.scene.drawn = { top: scrollTop - clientHeight, bottom: scrollTop + 2 * clientHeight };
      draw(this.context, this.scene);
      this.box.dataset['drawn'] = String(Number(this.box.dataset['drawn'] ?? 0) + 1);
    });
  };

  /** Updates the rows after data arrived, a group was toggled, or the width changed. */
  readonly arrange = (): void => {
    const { box, context, scene } = this;
    scene.width = box.clientWidth;
    scene.gutter = scene.width < 600 ? 84 : 170;
    scene.layout = layoutOf(this.timelineData, this.counters, {
      closed: this.closed,
      overlaid: scene.overlay !== null,
      fits: (text) => fitsGutter(context, text, scene.gutter),
    });
    this.fitCanvas();
  };

  /** Draws another step below each lane; null: none. */
  overlay(step: OverlaidStep | null): void {
    this.scene.overlay = step;
    this.arrange();
  }

  toggle(key: string): void {
    if (!this.closed.delete(key)) this.closed.add(key);
    this.arrange();
  }

  /** Collapses all groups except the one of the selected event (or the first); expands all if any is collapsed. */
  closeOthers(): void {
    const { layout, event } = this.scene;
    if (this.closed.size > 0) this.closed.clear();
    else {
      const ranks = layout.heads.filter(({ depth }) => depth === 0);
      const lane = layout.lanes.find((row) => row.lane === event?.lane);
      const rank = ranks.findLast(({ top }) => lane !== undefined && top <= lane.top) ?? ranks[0];
      for (const { key } of ranks) if (key !== rank?.key) this.closed.add(key);
    }
    this.arrange();
  }

  /** Expands all groups if a lane is in a collapsed one. */
  openGroupOf(lane: number): void {
    if (this.closed.size === 0 || this.scene.layout.lanes.some((row) => row.lane === lane)) return;
    this.closed.clear();
    this.arrange();
  }

  scrollToLane(lane: number): void {
    const { box } = this;
    const row = this.scene.layout.lanes.find((laneRow) => laneRow.lane === lane);
    if (row && (row.top < box.scrollTop || row.top > box.scrollTop + box.clientHeight - 20))
      box.scrollTop = Math.max(0, row.top - box.clientHeight / 2);
  }

  private fitCanvas(): void {
    const { canvas, context, scene } = this;
    scene.height = Math.max(scene.layout.height + 4, 120);
    const ratio = devicePixelRatio;
    canvas.width = Math.round(scene.width * ratio);
    canvas.height = Math.round(scene.height * ratio);
    canvas.style.width = `${scene.width}px`;
    canvas.style.height = `${scene.height}px`;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.redraw();
  }

  get highlight(): Highlight {
    return this.highlighted;
  }

  set highlight(highlight: Highlight) {
    this.highlighted = highlight;
    this.paint();
    this.showLegend();
  }

  private readonly paint = (): void => {
    const { scene, timelineData, highlighted } = this;
    scene.theme = themeOf();
    scene.colors = colorsOf(timelineData, highlighted, resolveColor(scene.theme.surface));
    this.redraw();
  };

  private showLegend(): void {
    const choose = (highlight: Highlight): void => {
      this.highlight = highlight;
      this.changed();
    };
    byId('legend').replaceChildren(...legendRows(this.timelineData, this.highlighted, choose));
  }
}

import { formatTimeTick } from '../../vocabulary/format.js';
import type { EventDetails, EventLinks, Place } from '../timeline/shown.js';
import { byId, element, eventPanel } from './panel.js';
import type { Picture } from './picture.js';
import type { TimelineSource } from './source.js';

interface EventTarget {
  source: TimelineSource;
  picture: Picture;
  goTo: (from: number, to: number, room: number) => void;
  /** Called after another event is selected. */
  changed: () => void;
  failed: (error: unknown) => void;
}

/** The selected event, shown with its launch or the kernel that it launched. */
export class SelectedEvent {
  private readonly details = byId('event');
  place: Place | null = null;
  /** The call that launched the selected event, or the kernel that it launched. */
  private launch: Place | null = null;

  constructor(private readonly target: EventTarget) {}

  /** @param show whether to move the picture to the event */
  async select(place: Place, show: boolean): Promise<void> {
    const { source, picture, changed } = this.target;
    const event = await source.event(place);
    if (!event) return;
    const { start, end, launch } = event;
    const { lane } = place;
    this.place = place;
    this.launch = launch?.place ?? null;
    picture.scene.event = { lane, start, end };
    picture.scene.launch = launch && { lane: launch.place.lane, start: launch.start, end: launch.end };
    this.showDetails(event);
    picture.openGroupOf(lane);
    if (show) {
      this.showTime(event);
      picture.scrollToLane(lane);
    }
    changed();
  }

  leave(): void {
    const { scene } = this.target.picture;
    this.place = this.launch = scene.event = scene.launch = null;
    this.details.replaceChildren();
  }

  /** Selects the event before or after the selected one in its row, without a change of zoom. */
  async step(by: -1 | 1): Promise<void> {
    if (!this.place || this.place.index + by < 0) return;
    const { lane, index } = this.place;
    await this.select({ lane, index: index + by }, false);
    const { event, range } = this.target.picture.scene;
    if (!event || (event.start >= range.start && event.end <= range.end)) return;
    const middle = (event.start + event.end) / 2;
    range.show(middle - range.width / 2, middle + range.width / 2);
    this.target.changed();
  }

  /** Goes from a kernel to the call that launched it, and back. */
  async followLaunch(): Promise<void> {
    if (this.launch) await this.select(this.launch, true);
  }

  private showDetails(event: EventDetails): void {
    const { source, failed, picture } = this.target;
    const { start, end, named, facts } = event;
    const duration = end - start;
    const times = `${formatTimeTick(duration, Math.max(1, duration / 100))}, from ${formatTimeTick(picture.data.zero + start, Math.max(1, duration / 10))}`;
    const followLaunch = (): void => void this.followLaunch().catch(failed);
    const explained = element('div');
    void this.explain(event, explained);
    this.details.replaceChildren(
      ...eventPanel(event, times, named ? source.pageOf?.(named) : undefined, followLaunch),
      ...(facts.length === 0 ? [element('p', { class: 'hint' }, source.note)] : []),
      explained,
    );
  }

  /** Links to the bars and findings with the event's time, which are computed when an event is first selected. */
  private async explain({ explained: key }: EventDetails, box: HTMLElement): Promise<void> {
    if (key === null) return;
    // Without links the event is shown all the same.
    const links = await this.target.source.links().catch((): EventLinks => ({}));
    const items = (links[key] ?? []).map(({ text, link }) =>
      element('li', {}, element('a', { href: link }, text)),
    );
    if (items.length > 0)
      box.replaceChildren(
        element('h3', {}, 'Where its time is counted'),
        element('ul', { class: 'plain' }, ...items),
      );
  }

  /** Moves to an event that is not in the visible range, or too short to see. */
  private showTime({ start, end }: EventDetails): void {
    const { picture, goTo } = this.target;
    const { range } = picture.scene;
    if (start < range.start || end > range.end || end - start < range.width / 200) goTo(start, end, 8);
  }
}

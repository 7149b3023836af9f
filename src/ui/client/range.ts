/** The visible part of a timeline, ns after its start. Zooming and moving stay inside the timeline. */
export class Range {
  start = 0;
  end = 1;
  constructor(readonly span: number) {
    this.end = span;
  }

  get width(): number {
    return this.end - this.start;
  }

  show(start: number, end: number): void {
    const width = Math.min(this.span, Math.max(minWidthNs, end - start));
    const middle = (start + end) / 2;
    this.start = Math.min(Math.max(0, middle - width / 2), this.span - width);
    this.end = this.start + width;
  }

  /** The range of the same width that starts later by `ns`; it may reach over the ends of the timeline. */
  shifted(ns: number): Range {
    const range = new Range(this.span);
    range.start = this.start + ns;
    range.end = this.end + ns;
    return range;
  }

  /** Zooms by a factor around a fixed point. @param center position of the point, 0 to 1 of the width */
  zoom(factor: number, center: number): void {
    const fixed = this.start + center * this.width;
    const width = Math.min(this.span, Math.max(minWidthNs, this.width * factor));
    const start = Math.min(Math.max(0, fixed - center * width), this.span - width);
    this.start = start;
    this.end = start + width;
  }

  /** @param share part of the width to move by; positive moves to later times */
  move(share: number): void {
    const by = share * this.width;
    const start = Math.min(Math.max(0, this.start + by), this.span - this.width);
    this.end = start + this.width;
    this.start = start;
  }
}

/** Minimum visible time, ns: about the duration of the shortest events. */
const minWidthNs = 50;

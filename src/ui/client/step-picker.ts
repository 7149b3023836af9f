import { formatTimeTick } from '../../vocabulary/format.js';
import type { Span, Steps } from '../timeline/shown.js';
import { byId, element } from './panel.js';

/** Another step below the shown one, aligned at their starts. */
export interface OverlaidStep {
  /** From a time in the shown step to the same time in the other one, ns. */
  shift: number;
  label: string;
}

/** What the choices of a step picker change. */
interface StepTarget {
  /** Moves to a step; null: to the whole capture. */
  show: (span: Span | null) => void;
  overlay: (step: OverlaidStep | null) => void;
  /** Called after the reader chose. */
  changed: () => void;
}

/** The lists that choose a step to show, and one to compare it with. */
export class StepPicker {
  private readonly shown = byId<HTMLSelectElement>('step');
  private readonly other = byId<HTMLSelectElement>('overlay');
  /** Steps by the values of the options. */
  private readonly spans: Span[] = [];

  constructor(private readonly target: StepTarget) {
    this.shown.addEventListener('change', this.show);
    this.other.addEventListener('change', () => {
      if (this.shown.value === '' && this.other.value !== '') this.chooseOfSameKind();
      this.show();
    });
    const turn = (by: number) => () => {
      const next = this.shown.selectedIndex + by;
      if (next < 0 || next >= this.shown.options.length) return;
      this.shown.selectedIndex = next;
      this.show();
    };
    byId('step-next').addEventListener('click', turn(1));
    byId('step-previous').addEventListener('click', turn(-1));
  }

  /** Lists the median and the slowest step of each kind, then its steps in order, as many as the source has. */
  fill(steps: readonly Steps[]): void {
    for (const { label, count, list, median, slowest } of steps) {
      const options = [
        this.option('median', median),
        this.option('slowest', slowest),
        ...list.map((span, number) => this.option(`${label} ${number + 1}`, span)),
      ];
      const group = element('optgroup', { label: `${label} (${count})` }, ...options);
      this.other.append(group.cloneNode(true));
      this.shown.append(group);
    }
  }

  private option(name: string, span: Span): HTMLOptionElement {
    const ns = span.end - span.start;
    this.spans.push(span);
    return element(
      'option',
      { value: String(this.spans.length - 1) },
      `${name}, ${formatTimeTick(ns, ns / 100)}`,
    );
  }

  /** Starts of the chosen steps, ns; null: none. */
  get state(): { step: number | null; overlay: number | null } {
    return {
      step: this.chosen(this.shown)?.start ?? null,
      overlay: this.chosen(this.other)?.start ?? null,
    };
  }

  /** Chooses the steps that start at these times, without moving. */
  set state({ step, overlay }: { step: number | null; overlay: number | null }) {
    const valueOf = (start: number | null): string => {
      const index = this.spans.findIndex((span) => span.start === start);
      return index === -1 ? '' : String(index);
    };
    this.shown.value = valueOf(step);
    this.other.value = valueOf(overlay);
    this.compare();
  }

  private chosen({ value }: HTMLSelectElement): Span | null {
    return value === '' ? null : (this.spans[Number(value)] ?? null);
  }

  /** Without a shown step: the median of the kind of the other one, or the slowest if the other one is the median. */
  private chooseOfSameKind(): void {
    const group = [...this.shown.querySelectorAll('optgroup')].find((kind) =>
      kind.querySelector(`option[value="${this.other.value}"]`),
    );
    const [median, slowest] = group?.querySelectorAll('option') ?? [];
    this.shown.value = (median?.value === this.other.value ? slowest : median)?.value ?? '';
  }

  private readonly show = (): void => {
    this.target.show(this.chosen(this.shown));
    this.compare();
    this.target.changed();
  };

  private compare(): void {
    const [step, other] = [this.chosen(this.shown), this.chosen(this.other)];
    const label = this.other.selectedOptions[0]?.textContent ?? '';
    this.target.overlay(step && other && { shift: other.start - step.start, label });
  }
}

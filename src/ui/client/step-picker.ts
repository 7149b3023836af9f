import { formatTimeTick } from '../../vocabulary/format.js';
import { byId, element } from './panel.js';
import type { TimelineSource } from './source.js';

/** Fills the step picker: median and slowest step of each kind, then all steps in order. */
export async function fillStepPicker(
  source: TimelineSource,
  goTo: (from: number, to: number) => void,
): Promise<void> {
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

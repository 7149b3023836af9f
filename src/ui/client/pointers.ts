import type { Place } from '../timeline/shown.js';
import { eventAt, nsAt } from './draw.js';
import type { Scene } from './scene.js';
import { byId } from './panel.js';
import { headAt } from './rows.js';

/** What mouse and touch input act on. */
interface PointerTarget {
  /** The scrolling element, and the canvas in it. */
  box: HTMLElement;
  canvas: HTMLCanvasElement;
  scene: Scene;
  redraw: () => void;
  /** Called after the visible time range changed. */
  moved: () => void;
  select: (place: Place) => void;
  /** Called after a time range was selected. */
  selected: () => void;
  /** Collapses or expands the rows of a group header. */
  toggle: (key: string) => void;
}

interface Drag {
  x: number;
  start: number;
  end: number;
  ns: number;
  selects: boolean;
  moved: boolean;
}

/**
 * Handles mouse and touch: drag moves; drag with Shift or in measuring mode selects; a click selects an event or toggles a group; the wheel
 * zooms.
 * @returns function that turns measuring mode on or off
 */
export function bindPointers(target: PointerTarget): () => void {
  const { box, canvas, scene, redraw, moved } = target;
  const { range } = scene;
  let measuring = false;
  let drag: Drag | null = null;
  canvas.addEventListener('pointerdown', (pointer) => {
    if (pointer.button !== 0) return;
    canvas.setPointerCapture(pointer.pointerId);
    drag = {
      x: pointer.offsetX,
      start: range.start,
      end: range.end,
      ns: nsAt(scene, pointer.offsetX),
      selects: pointer.shiftKey || measuring,
      moved: false,
    };
  });
  canvas.addEventListener('pointermove', (pointer) => {
    canvas.style.cursor = headAt(scene.layout, pointer.offsetY) ? 'pointer' : 'default';
    if (!drag) return;
    drag.moved ||= Math.abs(pointer.offsetX - drag.x) > 3;
    if (!drag.moved) return;
    if (drag.selects) {
      const ns = nsAt(scene, Math.max(scene.gutter, Math.min(scene.width, pointer.offsetX)));
      scene.selected = {
        start: Math.max(0, Math.min(drag.ns, ns)),
        end: Math.min(range.span, Math.max(drag.ns, ns)),
      };
      redraw();
    } else {
      const by = ((drag.x - pointer.offsetX) / (scene.width - scene.gutter)) * (drag.end - drag.start);
      range.show(drag.start + by, drag.end + by);
      moved();
    }
  });
  canvas.addEventListener('pointerup', (pointer) => {
    const finished = drag;
    drag = null;
    if (!finished) return;
    if (finished.moved) {
      if (finished.selects && scene.selected) target.selected();
      return;
    }
    const head = headAt(scene.layout, pointer.offsetY);
    const found = eventAt(scene, pointer.offsetX, pointer.offsetY);
    if (head) target.toggle(head.key);
    else if (found) target.select(found);
  });
  const shareOf = (x: number): number => Math.max(0, (x - scene.gutter) / (scene.width - scene.gutter));
  canvas.addEventListener('dblclick', (pointer) => {
    if (headAt(scene.layout, pointer.offsetY)) return;
    range.zoom(0.25, shareOf(pointer.offsetX));
    moved();
  });
  box.addEventListener(
    'wheel',
    (wheel) => {
      // With Alt the wheel scrolls vertically.
      if (wheel.altKey) return;
      wheel.preventDefault();
      if (wheel.shiftKey || Math.abs(wheel.deltaX) > Math.abs(wheel.deltaY))
        range.move((wheel.deltaX || wheel.deltaY) / 1000);
      else range.zoom(Math.exp(wheel.deltaY / 300), shareOf(wheel.offsetX));
      moved();
    },
    { passive: false },
  );
  return () => {
    measuring = !measuring;
    byId('measure').setAttribute('aria-pressed', String(measuring));
  };
}

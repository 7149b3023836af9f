import type { FC } from 'hono/jsx';
import { safeText } from '../render/safe-text.js';
import { emptySection } from './empty-section.js';

export const noTimeline = emptySection(
  'timeline',
  'Timeline',
  'No timeline.',
  'This session has no kernels, operators, stages or samples.',
  ['inferscope run -- COMMAND', 'Record a program with its kernels and API calls'],
  ['inferscope import FILE', 'Read a capture of nsys or the PyTorch profiler'],
);

/** The elements that the timeline script fills: buttons, canvas, legend and panel. */
export const TimelineParts: FC<{ executions: readonly string[]; execution: string; trace?: string }> = ({
  executions,
  execution,
  trace,
}) => (
  <>
    <div class="tools" role="toolbar" aria-label="Timeline">
      {executions.length > 1 && (
        <label>
          execution{' '}
          <select id="execution">
            {executions.map((id) => (
              <option {...(id === execution ? { selected: true } : {})}>{safeText(id)}</option>
            ))}
          </select>
        </label>
      )}
      <label>
        step{' '}
        <select id="step">
          <option value="">whole capture</option>
        </select>
      </label>
      <button type="button" id="step-previous" title="previous step">
        ‹
      </button>
      <button type="button" id="step-next" title="next step">
        ›
      </button>
      <label title="draws another step below the chosen one">
        with{' '}
        <select id="overlay">
          <option value="">no other step</option>
        </select>
      </label>
      <button type="button" id="fit" title="the whole capture (f)">
        Fit
      </button>
      <button type="button" id="zoom-in" title="zoom in (w)">
        +
      </button>
      <button type="button" id="zoom-out" title="zoom out (s)">
        −
      </button>
      <button
        type="button"
        id="measure"
        aria-pressed="false"
        title="drag to select and measure (m, or hold Shift)"
      >
        Measure
      </button>
      <label class="search">
        <input
          type="search"
          id="search"
          placeholder="kernel, operator, call (/)"
          aria-label="search for a name"
        />
      </label>
      <output id="found"></output>
    </div>
    <div
      id="timeline"
      tabindex={0}
      role="application"
      aria-label="Timeline: W and S zoom, A and D move, F fits, Z zooms to the selection, Comma and Period select the previous and next event of a row, L goes to the launch and back, V sums up what is seen, M measures, C closes all but one group, Up and Down choose a group, Enter closes or opens it"
    >
      <canvas></canvas>
    </div>
    <p id="status" class="hint" role="status"></p>
    <div id="legend"></div>
    <section id="details">
      <div id="event" aria-live="polite">
        <p class="hint">
          Zoom: wheel or <kbd>W</kbd> <kbd>S</kbd> · Move: drag or <kbd>A</kbd> <kbd>D</kbd> · Sum up and list
          a range: <kbd>Shift</kbd> and drag, or <kbd>V</kbd> for what is visible · Show an event and what
          launched it: click or <kbd>L</kbd> · Previous and next of its row: <kbd>,</kbd> <kbd>.</kbd> · Zoom
          to it: <kbd>Z</kbd> · Search: <kbd>/</kbd> · Close or open a rank or GPU: click, or <kbd>↑</kbd>{' '}
          <kbd>↓</kbd> <kbd>Enter</kbd>; <kbd>C</kbd> closes all others
        </p>
      </div>
      <div id="selection"></div>
    </section>
    {trace !== undefined && (
      <p class="hint">
        <a href={trace} download title="this execution as a chrome trace that starts at 0">
          Save for Perfetto
        </a>{' '}
        (opens at{' '}
        <a href="https://ui.perfetto.dev" target="_blank" rel="noopener noreferrer">
          ui.perfetto.dev
        </a>
        )
      </p>
    )}
  </>
);

import { textOn } from '../render/charts/chart.js';
import { classColors } from '../vocabulary/colors.js';
import { opClasses } from '../model/classes.js';

const lightClasses = opClasses
  .filter((name) => textOn(classColors[name]) === '#000000')
  .map((name) => `.c-${name}`)
  .join(', ');

/** Styles of pages that reports do not have. */
export const uiStyle = `
nav.pages { display: flex; flex-wrap: wrap; gap: .25rem 1rem; align-items: baseline; padding: .5rem 1rem; background: var(--surface);
  border-bottom: 1px solid var(--line); font-size: .9375rem; }
nav.pages strong { font-weight: 600; max-width: 40vw; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
nav.pages a { text-decoration: none; } nav.pages a[aria-current] { color: var(--ink); font-weight: 600; }
nav.switches { gap: .25rem .5rem; } nav.switches a { border: 1px solid var(--line); border-radius: 4px; padding: 0 .375rem; font-size: .8125rem; }
nav.switches a[aria-current] { border-color: var(--link); background: var(--raised); } nav.switches[aria-busy] { opacity: .6; }
nav.pages a:hover { text-decoration: underline; } nav.pages #save { margin-left: auto; }
main.narrow { max-width: clamp(1360px, 90vw, 1760px); margin: 0 auto; padding: 1rem; } main.wide { padding: .5rem; }
.tools { display: flex; flex-wrap: wrap; gap: .375rem .75rem; align-items: center; font-size: .875rem; margin: 0 0 .375rem; max-width: none; }
.tools button, .tools select, .tools input, form button { font: inherit; color: var(--ink); background: var(--surface);
  border: 1px solid var(--line); border-radius: 4px; padding: .2rem .5rem; min-height: 1.75rem; }
.tools button { cursor: pointer; } .tools button[aria-pressed=true] { border-color: var(--link); color: var(--link); }
.tools button:disabled { color: var(--muted); cursor: default; }
.tools select { max-width: 18rem; } .tools .search input { width: 15rem; max-width: 60vw; }
#editor { margin: 0 0 .5rem; min-height: 8rem; } #editor .cm-editor { background: var(--surface); color: var(--ink); border: 1px solid var(--line); border-radius: 4px; min-height: 8rem; font-size: .875rem; }
#editor .cm-editor:focus-within { outline: 2px solid var(--link); outline-offset: 1px; } #editor .cm-scroller, .cm-tooltip { font: .875rem/1.4 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
#editor .cm-content { caret-color: var(--ink); } #editor .cm-tooltip { background: var(--surface); color: var(--ink); border: 1px solid var(--line); } #editor .cm-tooltip li[aria-selected] { background: var(--link); color: var(--surface); }
#editor .cm-completionInfo { max-width: min(24rem, 80vw); padding: .25rem .5rem; white-space: normal; } #editor .cm-completionDetail { color: inherit; opacity: .8; }
.tok-keyword { color: var(--link); font-weight: 600; } .tok-string, .tok-number { color: var(--good, inherit); } .tok-comment { color: var(--muted); font-style: italic; }
/* The overview has a section with this id. */
div#timeline { position: relative; background: var(--surface); border: 1px solid var(--line); border-radius: 4px; overflow-x: hidden;
  overflow-y: auto; max-height: 62vh; min-height: 8rem; }
div#timeline canvas { display: block; touch-action: none; cursor: default; }
#status { margin: .25rem 0; min-height: 1.2em; }
#details { padding: .75rem 1rem; margin: .5rem 0 1rem; } #details h2 { overflow-wrap: anywhere; font-size: 1.0625rem; }
/* Columns, not a grid: a short table does not leave a hole next to a long one. */
#details .columns { columns: 26rem; column-gap: 2rem; } #details .columns + * { margin-top: .75rem; } #details .columns .scroll { margin: 0 0 .75rem; break-inside: avoid; }
#selection > details:not([open]) { display: inline-block; margin-right: 1rem; }
#details th button { font-weight: 600; } #details td button { text-align: left; overflow-wrap: anywhere; }
#details dl { font-size: .875rem; columns: 22rem; column-gap: 2rem; margin: .5rem 0; } #details dl div { display: grid; grid-template-columns: 8rem minmax(0, 1fr); gap: 0 1rem; padding: .125rem 0; break-inside: avoid; }
#details dt { color: var(--muted); } #details dd { margin: 0; overflow-wrap: anywhere; }
#details button { font: inherit; color: var(--link); background: none; border: 0; padding: 0; cursor: pointer; text-decoration: underline; text-underline-offset: 3px; }
/* One long text does not push the other columns out of sight. */
#answer td { max-width: 34rem; overflow: hidden; text-overflow: ellipsis; }
#legend { display: flex; flex-wrap: wrap; gap: .125rem 1.5rem; font-size: .8125rem; color: var(--muted); padding: 0 .25rem; }
#legend p { display: flex; flex-wrap: wrap; gap: .125rem .25rem; margin: 0; max-width: none; align-items: center; }
#legend button { font: inherit; color: inherit; background: none; border: 1px solid transparent; border-radius: 4px; padding: 0 .25rem; min-height: 1.5rem; cursor: pointer; }
#legend button:hover { color: var(--ink); border-color: var(--line); } #legend button[aria-pressed=true] { color: var(--ink); border-color: var(--link); background: var(--raised); }
#filter { min-width: 14rem; } table.sessions td { vertical-align: middle; } table.sessions .wraps { min-width: 13rem; } table.sessions .fits { white-space: normal; overflow-wrap: break-word; } table.sessions [data-head=Headline] { min-width: 14rem; } @media (min-width: 1500px) { table.sessions [data-head=GPU] { white-space: nowrap; } }
.trend { white-space: nowrap; font-variant-numeric: tabular-nums; } .sparkline { vertical-align: middle; } .sparkline polyline { fill: none; stroke: var(--muted); stroke-width: 1.5; } .sparkline circle { fill: var(--link); }
.whole { max-height: none; }
.histogram { display: block; width: 100%; height: 7rem; border-bottom: 1px solid var(--line); }
.icicle { position: relative; overflow: hidden; } .icicle > * { position: absolute; height: 1.5rem; padding: .125rem 0; overflow: hidden;
  white-space: nowrap; text-indent: 4px; font-size: .75rem; text-decoration: none; color: var(--ink); border: solid var(--surface); border-width: 0 1px 1px 0; text-overflow: ellipsis; }
.icicle > :not([class*=c-]) { background: var(--raised); } .icicle > [class*=c-] { color: #fff; } .icicle > :is(${lightClasses}) { color: #000; }
.icicle a:hover, .icicle a:focus-visible { border-color: var(--ink); outline-offset: -2px; }
.ends :is(:first-child, :last-child) { white-space: nowrap; } .ends { display: flex; justify-content: space-between; gap: 1rem; max-width: none; }
#chosen :is(h2, p) { overflow-wrap: anywhere; } #chosen h2 { font-size: 1.0625rem; } tr[aria-current] { background: var(--raised); }
.figures { display: flex; flex-wrap: wrap; gap: .25rem 1.5rem; margin: .5rem 0 1rem; } .figures dt { color: var(--muted); font-size: .8125rem; }
.figures dd { margin: 0; font-variant-numeric: tabular-nums; }
@media screen and (max-width: 600px) {
  #editor .cm-completionInfo { display: none; }
  /* Column heads stay, since they sort the table; a session's name is the head of its list. */
  :is(#named, #selected) thead { display: block; } :is(#named, #selected) thead tr { display: flex; flex-wrap: wrap; gap: 0 1rem; } :is(#named, #selected) th { border: 0; padding: 0; position: static; }
  /* The values of a row are inline, so that a page of hundreds of names stays short. */
  :is(#named, #selected) tbody tr { display: flex; flex-wrap: wrap; gap: 0 .75rem; font-size: .8125rem; } :is(#named, #selected) td { padding: 0; gap: .25rem; } :is(#named, #selected) td:first-child { flex-basis: 100%; font-size: .875rem; }
  :is(#named, #selected) td::before { max-width: none; white-space: nowrap; margin-right: 0; padding-right: 0; } #named td:nth-child(2)::before { content: none; } :is(#named, #selected) td.number { padding: 0; }
  #details .columns table { width: 100%; } #answer td { max-width: 14rem; white-space: nowrap; }
  .sessions tr { position: relative; } .sessions td:first-child { position: absolute; right: 0; } .sessions td:nth-child(2) { display: block; text-align: left; padding-right: 2rem; }
  .sessions td:empty { display: none; }
}
@media print { nav.pages, .tools { display: none; } }
#named th a { text-decoration: none; } #named .wraps { min-width: 12rem; }
`;

import { opClasses } from '../../model/classes.js';
import { classColors, toneColors } from '../../vocabulary/colors.js';
import { themes, type Theme } from '../palette.js';
import { fontFamily } from '../charts/chart.js';

const variables = (theme: Theme): string => `
  --ink: ${theme.ink}; --muted: ${theme.muted}; --line: ${theme.line}; --surface: ${theme.surface};
  --page: ${theme.dark ? '#0f1217' : '#f6f7f9'}; --raised: ${theme.dark ? '#1e232c' : '#f1f3f6'};
  --link: ${theme.dark ? '#7db8ff' : '#0b5cad'}; --error: ${theme.dark ? '#ff8f7a' : '#b3261e'};
  --warning: ${theme.dark ? '#f2c14e' : '#8a5a00'}; --good: ${theme.dark ? '#4cc9a0' : '#00714f'}; --idle: ${theme.dark ? toneColors.idle.dark : toneColors.idle.light};
  --edge: ${theme.dark ? 'rgb(0 0 0 / .55)' : 'rgb(20 30 50 / .22)'};`;

const classRules = opClasses.map((name) => `.c-${name}{background:${classColors[name]}}`).join('\n');

/** Shows the rows of a table as lists: the first cell, then each value next to its column's name. */
const stacked = (table: string): string => `
  ${table} { width: 100%; min-width: 0; } ${table} thead { display: none; } ${table} :is(caption, tbody, tr) { display: block; }
  ${table} tr { border-bottom: 1px solid var(--line); padding: .375rem 0; }
  ${table} td { display: flex; justify-content: end; gap: .25rem; border: 0; padding: .0625rem .25rem .0625rem 0; white-space: normal; overflow-wrap: anywhere; text-align: right; }
  ${table} td:first-child { font-weight: 600; text-align: left; justify-content: start; } ${table} td.number:first-child { justify-content: start; } ${table} td.number:first-child::before { content: attr(data-head); }
  ${table} td:not(:first-child)::before { content: attr(data-head); color: var(--muted); text-align: left; flex: none; max-width: 50%; margin-right: auto; padding-right: .75rem; }
  ${table} td:has(a) { padding-block: .1875rem; }
  ${table} td:empty { display: none; } ${table} td.wraps { min-width: 0; } ${table} td.number { padding-right: .25rem; } ${table} td code { white-space: normal; }`;

/** All styles of the page: system fonts, light and dark, from 375 px width, paper. */
export const style = `
:root { color-scheme: light dark; ${variables(themes.light)} }
@media screen and (prefers-color-scheme: dark) { :root { ${variables(themes.dark)} } }
* { box-sizing: border-box; }
html { scroll-behavior: smooth; scroll-padding-top: 1rem; -webkit-text-size-adjust: 100%; }
@media (prefers-reduced-motion: reduce) { html { scroll-behavior: auto; } }
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.5 ${fontFamily}; }
a { color: var(--link); text-underline-offset: 3px; }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; border-radius: 3px; }
.skip { position: absolute; left: -99rem; }
.skip:focus { left: 1rem; top: .5rem; background: var(--surface); padding: .5rem 1rem; z-index: 2; }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }

.layout { max-width: clamp(1360px, 90vw, 1760px); margin: 0 auto; padding: 1rem; }
main { min-width: 0; }
nav.contents { font-size: .875rem; }
nav.contents p { display: none; }
nav.contents ul { list-style: none; margin: 0 0 1rem; padding: 0; display: flex; gap: 0 1rem; overflow-x: auto; white-space: nowrap; }
nav.contents a { color: var(--muted); text-decoration: none; display: inline-block; padding: .2rem 0; }
nav.contents a:hover { color: var(--ink); text-decoration: underline; }
@media screen and (min-width: 1120px) {
  .layout { display: grid; grid-template-columns: 190px minmax(0, 1fr); gap: 2.5rem; padding: 1rem 2rem 4rem; }
  nav.contents { position: sticky; top: 1rem; align-self: start; max-height: calc(100vh - 4rem); overflow-y: auto; }
  nav.contents p { display: block; margin: 0 0 .5rem; font-weight: 600; }
  nav.contents ul { display: block; white-space: normal; border-left: 1px solid var(--line); }
  nav.contents a { display: block; padding: .25rem .75rem; margin-left: -1px; border-left: 2px solid transparent; }
  nav.contents a[aria-current] { color: var(--ink); border-left-color: var(--link); font-weight: 600; }
}

header, section { background: var(--surface); border: 1px solid var(--line); border-radius: 8px;
  padding: 1.25rem 1.5rem; margin: 0 0 1.25rem; }
@media screen and (min-width: 1120px) {
  .halves { display: grid; grid-template-columns: minmax(0, 1.25fr) minmax(0, 1fr); gap: 0 1.25rem; align-items: start; }
  .halves > :only-child { grid-column: 1 / -1; }
}
@media (max-width: 600px) {
  .layout { padding: .5rem; }
  header, section { padding: 1rem .75rem; border-radius: 6px; }
}
.kicker { margin: 0; color: var(--muted); font-size: .875rem; overflow-wrap: anywhere; }
h1 { font-size: 1.625rem; line-height: 1.25; margin: .125rem 0 1rem; overflow-wrap: anywhere; letter-spacing: -.01em; }
h2 { font-size: 1.25rem; line-height: 1.3; margin: 0 0 .5rem; letter-spacing: -.005em; }
h2 a { color: inherit; text-decoration: none; }
h2 a:hover::after { content: ' #'; color: var(--muted); }
h3 { font-size: 1rem; margin: 1.5rem 0 .25rem; }
p { margin: .25rem 0 .75rem; max-width: 75ch; overflow-wrap: anywhere; }
.identity { margin: -.75rem 0 1rem; color: var(--muted); max-width: none; }
.lead { margin: 0 0 1rem; display: grid; grid-template-columns: fit-content(9rem) minmax(0, 1fr); }
.lead div { display: contents; } .lead :is(dt, dd) { padding: .5rem 0; border-top: 1px solid var(--line); }
.lead:first-of-type div:first-child :is(dt, dd) { border-top: 0; } .lead + .lead { margin-top: -1rem; }
.lead dt { color: var(--muted); font-size: .875rem; padding: .6rem 1.25rem .5rem 0; }
.lead dd { margin: 0; overflow-wrap: anywhere; }
@media (max-width: 600px) { .lead { grid-template-columns: minmax(0, 1fr); } .lead dt { padding-bottom: 0; } .lead dd { border: 0; padding-top: 0; } }

.cards { display: grid; grid-template-columns: repeat(4, minmax(0, 1fr)); gap: .75rem; margin: 1rem 0 0; padding: 0; list-style: none; }
.cards li { background: var(--raised); border-radius: 6px; padding: .75rem .875rem; min-width: 0; }
.cards .label { font-size: .8125rem; color: var(--muted); margin: 0; }
.cards .label::first-letter { text-transform: uppercase; }
.cards .value { font-size: 1.5rem; line-height: 1.3; font-weight: 600; margin: .1rem 0 0; font-variant-numeric: tabular-nums; }
.cards .value .unit { font-size: 1rem; font-weight: 400; }
.cards .value .missing { color: var(--muted); }
.cards .note { font-size: .8125rem; color: var(--muted); margin: 0; overflow-wrap: anywhere; }
@media (max-width: 800px) { .cards { grid-template-columns: repeat(2, minmax(0, 1fr)); gap: .5rem; }
  .cards li { padding: .625rem; } .cards .value { font-size: 1.25rem; } }

.figure, td.number { font-variant-numeric: tabular-nums; }
.spread { color: var(--muted); font-size: .875em; }
.fault { color: var(--error); font-weight: 600; }
.notices { list-style: none; margin: 1rem 0 0; padding: 0; font-size: .9375rem; }
.notice { border-left: 3px solid var(--muted); padding: .375rem .75rem; margin: 0 0 .5rem; background: var(--raised); overflow-wrap: anywhere; }
.notice.error { border-color: var(--error); } .notice.error strong { color: var(--error); }
.notice.warning { border-color: var(--warning); } .notice.warning strong { color: var(--warning); }
.notice.good { border-color: var(--good); } .notice.good strong { color: var(--good); }
.notice strong { text-transform: capitalize; }
.notice code { color: var(--muted); }
.absent { color: var(--muted); } .absent strong { color: var(--ink); }
.notes { list-style: none; padding: 0; margin: .5rem 0; font-size: .875rem; color: var(--muted); overflow-wrap: anywhere; }
.hint { font-size: .8125rem; color: var(--muted); margin: 0 0 .25rem; }
kbd { font: inherit; font-size: .8125rem; border: 1px solid var(--line); border-radius: 3px; padding: 0 .3em; }
code { font: .875em/1.4 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; overflow-wrap: anywhere; }

figure { margin: .5rem 0 1rem; }
.chart { width: 100%; position: relative; }
.chart .canvas { width: 100%; height: 100%; }
.two { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)); gap: 0 2rem; }
.two > *, .sides > * { min-width: 0; }
.sides { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 280px), 1fr)); gap: 0 1.25rem; } .sides p { margin-bottom: 0; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .125rem 1rem; padding: 0; margin: .5rem 0; font-size: .8125rem; }
.class-name { white-space: nowrap; }
.swatch { display: inline-block; width: .75em; height: .75em; border-radius: 2px; margin-right: .4em; }
${classRules}

details { margin: .25rem 0; font-size: .875rem; }
summary { cursor: pointer; color: var(--link); padding: .25rem 0; width: fit-content; }
.scroll:has(> table.whole) { max-height: none; }
.scroll { position: relative; overflow-x: auto; max-width: 100%; max-height: 32rem; overflow-y: auto; }
/* A shadow at an edge behind which the table goes on: the surface that covers it scrolls along. */
.scroll { background: linear-gradient(to right, var(--surface) 40%, transparent) left / 2.5rem 100% no-repeat local,
  linear-gradient(to left, var(--surface) 40%, transparent) right / 2.5rem 100% no-repeat local,
  linear-gradient(to top, var(--surface) 40%, transparent) bottom / 100% 2.5rem no-repeat local,
  linear-gradient(to right, var(--edge), transparent) left / .875rem 100% no-repeat scroll,
  linear-gradient(to left, var(--edge), transparent) right / .875rem 100% no-repeat scroll,
  linear-gradient(to top, var(--edge), transparent) bottom / 100% .875rem no-repeat scroll; }
.scroll + .scroll, .notes + .scroll, p + .scroll { margin-top: .75rem; }
table { border-collapse: collapse; font-size: .875rem; min-width: min(100%, 30rem); }
caption { text-align: left; color: var(--muted); font-size: .8125rem; padding: .25rem 0; position: sticky; left: 0; }
th, td { padding: .3125rem .75rem .3125rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { font-weight: 600; color: var(--muted); font-size: .8125rem; vertical-align: bottom; }
th.number, td.number { text-align: right; padding-right: 1rem; }
table.headline { font-size: 1rem; margin: 0 0 1rem; min-width: 0; } .headline :is(th, td) { padding-right: 1.25rem; vertical-align: baseline; } .headline td:nth-child(2) { white-space: normal; }
@media (max-width: 600px) { .headline :is(tbody, tr) { display: block; }
  .headline :is(th, td) { display: inline-block; border: 0; padding-right: 1rem; white-space: normal; } .headline th { display: block; padding-bottom: 0; } .headline td:empty { display: none; } }
td.wraps { white-space: normal; min-width: 9rem; overflow-wrap: break-word; }
.all-columns { display: block; width: fit-content; font-size: .875rem; color: var(--muted); margin: .25rem 0; cursor: pointer; }
.all-columns:not(:has(:checked)) + .scroll .detail, .all-columns:not(:has(:checked)) + .scroll + .notes .detail, .all-columns:has(:checked) + .scroll + .notes .undetailed { display: none; }
/* On a phone a row of a wide table is a list: its first cell, then each value next to its column's name. */
@media screen and (max-width: 600px) {
  .scroll > table { min-width: 0; } .scroll :is(th, td:not(.number)) { white-space: normal; }
  .scroll:not(.whole):has(> table.stacks) { max-height: 48rem; } .scroll td.wraps { min-width: 0; } .scroll td code { white-space: normal; }${stacked('table.stacks')}
}
/* In a box that it does not fit, its cells wrap first; then it is a list there, too. */
@media screen { .breaks td:not(.number), .breaks td code { white-space: normal; overflow-wrap: break-word; } .breaks td:not(.number) { min-width: 7rem; } }
@media screen { .findings td.wraps { min-width: 0; }${stacked('table.lists')} }
/* A short table is shown whole: as a list it would be cut after a few rows. */
.scroll:not(:has(tr:nth-child(13))) { max-height: none !important; }
@media (min-width: 601px) { .scroll:not(:has(tr:nth-child(25))) { max-height: none; } }
td.name, td code { max-width: 34rem; }
td code { display: inline-block; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; vertical-align: bottom; }
dl.definitions { display: grid; grid-template-columns: minmax(8rem, max-content) minmax(0, 1fr); gap: .5rem 1.25rem; margin: .5rem 0 1rem; }
.findings details { container-type: inline-size; }
dl.definitions dt { font-weight: 600; } dl.definitions dd { margin: 0; max-width: 75ch; overflow-wrap: anywhere; }
@media (max-width: 600px) { dl.definitions { grid-template-columns: minmax(0, 1fr); gap: 0; } dl.definitions dd { margin: 0 0 .625rem; } }
@container (max-width: 600px) { dl.definitions { grid-template-columns: minmax(0, 1fr); gap: 0; } dl.definitions dd { margin: 0 0 .625rem; } }
.answers { margin: 0 0 .5rem; } .answers div { padding: .5rem 0; border-top: 1px solid var(--line); break-inside: avoid; } .answers div:first-child { border-top: 0; }
.answers dt { color: var(--muted); font-size: .875rem; } .answers dd { margin: 0; max-width: 75ch; overflow-wrap: anywhere; }
.gain { display: block; max-width: 100%; margin-top: .25rem; } .gain .axis { stroke: var(--line); } .gain .interval { fill: var(--muted); opacity: .45; }
.gain .expected { stroke: var(--ink); stroke-width: 2; } .gain .achieved { fill: var(--link); stroke: var(--surface); }
.line-key { vertical-align: -1px; margin-right: .35em; }
.findings { padding-left: 1.5rem; } .findings > li { margin: .5rem 0; } .findings > li > details { font-size: 1rem; } .findings > li > details > summary { color: var(--ink); width: auto; overflow-wrap: anywhere; }
.save { font: inherit; font-size: .8125rem; color: var(--ink); background: var(--surface); border: 1px solid var(--line); border-radius: 4px; padding: .125rem .5rem; margin: .25rem 0; cursor: pointer; } @media print { .save { display: none; } }
.place { margin: .125rem 0 .5rem; font-size: .875rem; } .brief p { margin: .25rem 0; font-size: .9375rem; } .brief .expected { font-weight: 600; } .brief .expected::first-letter { text-transform: uppercase; } details[open] + .brief { display: none; }
.severity { text-transform: uppercase; font-size: .75rem; letter-spacing: .03em; color: var(--muted); } .severity.high { color: var(--error); } .severity.medium { color: var(--warning); }
pre { font: .8125rem/1.45 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; white-space: pre-wrap; overflow-wrap: anywhere; background: var(--raised); padding: .5rem .75rem; border-radius: 4px; margin: .375rem 0; }
h2 + div > h3:first-child { margin-top: .25rem; } header .help { margin: 0 0 .5rem; padding: 0; list-style: none; } header :is(.help li, p) { max-width: none; }
.help { padding-left: 1.25rem; } .help li { margin: .375rem 0; max-width: 75ch; overflow-wrap: anywhere; }
.help small { color: var(--muted); display: block; font-size: .875rem; }
footer { color: var(--muted); font-size: .8125rem; overflow-wrap: anywhere; padding: 0 .25rem 2rem; }

th button { all: unset; cursor: pointer; } th button:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
th button:hover { color: var(--ink); } th[aria-sort=ascending] button::after { content: ' ↑'; } th[aria-sort=descending] button::after { content: ' ↓'; }
thead th { position: sticky; top: 0; background: var(--surface); z-index: 1; }
.filter { display: block; font-size: .875rem; color: var(--muted); margin: .5rem 0; }
.filter input { font: inherit; color: var(--ink); background: var(--raised); border: 1px solid var(--line); border-radius: 4px; padding: .25rem .5rem; margin-right: .5rem; max-width: 60%; }
.next { padding: 0; list-style: none; } .next li { margin: .5rem 0; overflow-wrap: anywhere; }
.next code { display: block; background: var(--raised); padding: .4rem .6rem; border-radius: 4px; }
.stake { color: var(--muted); white-space: nowrap; }

/* Paper: light, no navigation, nothing scrolls or is cut; the script redraws the charts for this width. */
@page { size: A4; margin: 14mm; }
html.printing .layout { display: block; width: 660px; padding: 0; }
html.printing .two { grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 0 1rem; }
@media print {
  body { background: #fff; font-size: 11pt; }
  nav.contents, .skip, .hint, .filter, noscript { display: none; } :focus-visible { outline: 0; }
  thead th { position: static; }
  .layout { display: block; max-width: none; padding: 0; }
  header, section { border: 0; border-radius: 0; padding: 0; margin: 0 0 1.5rem; }
  section { border-top: 1px solid var(--line); padding-top: .75rem; }
  .cards { grid-template-columns: repeat(4, minmax(0, 1fr)); } .cards .value { font-size: 1.2rem; }
  .cards li, .notice, .swatch { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  figure, .cards li, tr, p, .notice { break-inside: avoid; }
  h2, h3, section > p, .legend, caption { break-after: avoid; }
  .two { grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 0 1rem; } .two > * { break-inside: avoid; }
  .scroll { overflow: visible; max-height: none; break-inside: avoid; background: none; }
  table { font-size: 7.5pt; width: 100%; } th, td { white-space: normal; padding-right: .3rem; } th.number, td.number { padding-right: .35rem; }
  td.wraps { min-width: 4.5rem; } td code { white-space: normal; max-width: none; min-width: 4rem; }
  details:not([open]) { display: none; } .findings > li > details:not([open]) { display: block; } .brief { display: none; }
  a { color: inherit; text-decoration: none; }
}
`;

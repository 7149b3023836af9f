import { autocompletion, closeBrackets, completionKeymap } from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { bracketMatching, syntaxHighlighting } from '@codemirror/language';
import { PostgreSQL, sql, type SQLNamespace } from '@codemirror/lang-sql';
import { EditorState } from '@codemirror/state';
import { EditorView, keymap } from '@codemirror/view';
import { classHighlighter } from '@lezer/highlight';

/** A table as the page describes it. */
export interface TableDescribed {
  name: string;
  doc: string;
  columns: readonly { name: string; type: string; doc: string }[];
}

/** An editor that completes tables and columns; Tab leaves it, as it leaves every field. */
export function sqlEditor(
  parent: HTMLElement,
  text: string,
  tables: readonly TableDescribed[],
  run: () => void,
): { text: () => string } {
  const schema: SQLNamespace = Object.fromEntries(
    tables.map(({ name, doc, columns }, index) => [
      name,
      {
        // What was recorded comes first, as on the page.
        self: { label: name, type: 'type', info: doc, boost: -Math.min(99, index) },
        children: columns.map((column) => ({
          label: column.name,
          type: 'property',
          detail: column.type,
          info: column.doc,
        })),
      },
    ]),
  );
  const view = new EditorView({
    parent,
    state: EditorState.create({
      doc: text,
      extensions: [
        // Before the keys that add a line.
        keymap.of([{ key: 'Mod-Enter', run: () => (run(), true) }]),
        keymap.of([...completionKeymap, ...defaultKeymap, ...historyKeymap]),
        history(),
        bracketMatching(),
        closeBrackets(),
        autocompletion({ icons: false }),
        // Of its dialects that of PostgreSQL is the nearest to DuckDB.
        sql({ dialect: PostgreSQL, schema, upperCaseKeywords: true }),
        syntaxHighlighting(classHighlighter),
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({ 'aria-label': 'one SELECT statement', spellcheck: 'false' }),
      ],
    }),
  });
  return { text: () => view.state.doc.toString() };
}

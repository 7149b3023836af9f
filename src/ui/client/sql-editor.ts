import { autocompletion, closeBrackets, completionKeymap } from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { bracketMatching, syntaxHighlighting } from '@codemirror/language';
import { PostgreSQL, sql, type SQLNamespace } from '@codemirror/lang-sql';
import { EditorState } from '@codemirror/state';
import { EditorView, keymap } from '@codemirror/view';
import { classHighlighter } from '@lezer/highlight';

/** A table of the session and its columns. */
export interface TableDescribed {
  name: string;
  doc: string;
  columns: readonly { name: string; type: string; doc: string }[];
}

/** A SQL editor that completes tables and columns; Tab leaves the field. */
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
        // Recorded tables come first, as on the page.
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
        // Before the default keys, which would insert a line.
        keymap.of([{ key: 'Mod-Enter', run: () => (run(), true) }]),
        keymap.of([...completionKeymap, ...defaultKeymap, ...historyKeymap]),
        history(),
        bracketMatching(),
        closeBrackets(),
        autocompletion({ icons: false }),
        // The CodeMirror dialect closest to DuckDB is PostgreSQL.
        sql({ dialect: PostgreSQL, schema, upperCaseKeywords: true }),
        syntaxHighlighting(classHighlighter),
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({ 'aria-label': 'one SELECT statement', spellcheck: 'false' }),
      ],
    }),
  });
  return { text: () => view.state.doc.toString() };
}

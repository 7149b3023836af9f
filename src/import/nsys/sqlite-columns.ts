export interface TableColumns {
  columns: string[];
  /** Column that is an alias of the rowid (INTEGER PRIMARY KEY), for which records have null; −1 if there is none. */
  rowidColumn: number;
}

/** Columns of a CREATE TABLE statement as SQLite stores it, comments and later ADD COLUMNs included. */
export function columnsOf(sql: string): TableColumns {
  const plain = sql.replace(/--[^\n]*|\/\*[^]*?\*\//g, ' ');
  const body = plain.slice(plain.indexOf('(') + 1, plain.lastIndexOf(')'));
  const columns: string[] = [];
  let rowidColumn = -1;
  for (const definition of splitTopLevel(body)) {
    const match = /^\s*(?:"((?:[^"]|"")*)"|`([^`]*)`|\[([^\]]*)\]|([^\s"`[(]+))([^]*)$/.exec(definition);
    if (!match) continue;
    const name = match[1]?.replaceAll('""', '"') ?? match[2] ?? match[3] ?? match[4]!;
    if (match[4] && /^(PRIMARY|FOREIGN|UNIQUE|CHECK|CONSTRAINT)$/i.test(name)) continue;
    if (/^\s*INTEGER\b[^]*\bPRIMARY\s+KEY\b/i.test(match[5]!)) rowidColumn = columns.length;
    columns.push(name);
  }
  return { columns, rowidColumn };
}

function splitTopLevel(text: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let quoted = '';
  let from = 0;
  for (let i = 0; i < text.length; i++) {
    const char = text[i]!;
    if (quoted) {
      if (char === quoted) quoted = '';
    } else if (char === '"' || char === "'" || char === '`') quoted = char;
    else if (char === '(') depth++;
    else if (char === ')') depth--;
    else if (char === ',' && depth === 0) {
      parts.push(text.slice(from, i));
      from = i + 1;
    }
  }
  parts.push(text.slice(from));
  return parts;
}

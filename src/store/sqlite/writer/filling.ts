/**
 * Makes the search texts of pending rows (sqlite-schema.ts) in small transactions beside requests. Only a writer whose tables have an index of
 * words loads this file, as the stems of 15 languages take 12 ms.
 */
import type { DatabaseSync } from 'node:sqlite';
import { indexedText, type SearchIndex } from '../../../model/search/search-index.ts';
import { quoteName } from '../../sql-text.ts';
import type { Table } from '../../store.ts';
import { inTransaction } from '../connection.ts';
import { pendingName, type WordIndex } from '../sqlite-schema.ts';

/** Longest time for which one transaction of the filling delays a commit. */
const turnMs = 15;
/** Rows of one transaction, and octets of documents after which it ends. */
const rowsPerTurn = 200;
const octetsPerTurn = 1_048_576;

/** The tables with pending rows and what reads and writes them. @returns a function that fills for one turn; it returns true if rows may remain */
export function createFilling(
  database: DatabaseSync,
  indexes: readonly { readonly table: Table; readonly index: WordIndex }[],
): () => boolean {
  const tables = indexes.map(({ table, index }) => {
    const rows = quoteName(table.name);
    return {
      words: index.words,
      pending: database.prepare(
        `SELECT id, doc FROM ${rows} INDEXED BY ${quoteName(pendingName(table))} WHERE ${index.pendingSql} LIMIT ${rowsPerTurn}`,
      ),
      // The revision stays: the document is the same.
      write: database.prepare(`UPDATE ${rows} SET search = ? WHERE id = ?`),
    };
  });
  return () => {
    const table = tables[0];
    if (table === undefined) return false;
    const endsAt = performance.now() + turnMs;
    let octets = 0;
    let rows = 0;
    const texts: [id: string, text: string][] = [];
    for (const { id, doc } of table.pending.iterate()) {
      rows += 1;
      octets += String(doc).length;
      texts.push([String(id), textOf(table.words, String(doc))]);
      if (performance.now() > endsAt || octets > octetsPerTurn) break;
    }
    if (rows === 0) {
      tables.shift();
      return tables.length > 0;
    }
    inTransaction(database, () => {
      for (const [id, text] of texts) table.write.run(text, id);
    });
    return true;
  };
}

function textOf(words: SearchIndex, doc: string): string {
  return indexedText(words, JSON.parse(doc) as Readonly<Record<string, unknown>>);
}

/**
 * The index of words of a table (`Table.words`): an FTS5 table without content, and triggers that keep it with every write, also of other programs.
 *
 * The index holds a row if and only if the row is not deleted and its text begins with the mark of the declaration. Texts of an earlier
 * declaration are `pending`: a partial index lists them, and the writer thread makes them again in small transactions beside requests
 * (writer/filling.ts). All state is in the file, so a process that is killed continues where it was. Searches wait until no row is pending.
 */
import type { DatabaseSync } from 'node:sqlite';
import type { SearchIndex } from '../../model/search/search-index.ts';
import type { Observe } from '../../observe/observation.ts';
import { quoteName } from '../quote-name.ts';
import type { Table } from '../store.ts';
import { isMarked } from './compile/words.ts';
import { inTransaction } from './in-transaction.ts';

export type WordIndex = {
  readonly words: SearchIndex;
  /** Quoted name of the FTS5 table. */
  readonly name: string;
  /** True in SQL if a row is pending. */
  readonly pendingSql: string;
  /** Names and texts of the table and its triggers, as SQLite keeps them. */
  readonly objects: readonly { readonly name: string; readonly sql: string }[];
  /** Adds the rows that have their text already. */
  readonly fillSql: string;
};

const suffixes = ['insert', 'update', 'delete'] as const;

/**
 * Words stand between spaces, so the tokenizer that splits at ASCII only suffices. `=` is a word (src/model/search/search-index.ts).
 * The lists of short prefixes keep a prefix of one letter as cheap as a word.
 */
const fts5 = `fts5(words, content='', columnsize=0, tokenize="ascii tokenchars '='", prefix='1 2 3')`;

export function wordIndexOf(table: Table): WordIndex | undefined {
  const { words } = table;
  if (words === undefined) return undefined;
  const rows = quoteName(table.name);
  const own = ownName(table.name);
  const name = quoteName(own);
  const text = (row: string): string => `substr(${row}search,${words.mark.length + 1})`;
  const holds = (row: string): string =>
    `${row}deleted_at IS NULL AND ${isMarked(`${row}search`, words.mark)}`;
  const add = `INSERT INTO ${name}(rowid, words) SELECT new.rowid, ${text('new.')} WHERE ${holds('new.')};`;
  const remove = `INSERT INTO ${name}(${name}, rowid, words) SELECT 'delete', old.rowid, ${text('old.')} WHERE ${holds('old.')};`;
  const trigger = (on: string, when: string, body: string): { name: string; sql: string } => {
    const called = triggerName(table.name, on);
    return {
      name: called,
      sql: `CREATE TRIGGER ${quoteName(called)} AFTER ${when} ON ${rows} BEGIN ${body} END`,
    };
  };
  return {
    words,
    name,
    pendingSql: `deleted_at IS NULL AND (search IS NULL OR NOT ${isMarked('search', words.mark)})`,
    objects: [
      { name: own, sql: `CREATE VIRTUAL TABLE ${name} USING ${fts5}` },
      trigger('insert', 'INSERT', add),
      trigger('update', 'UPDATE OF search, deleted_at', `${remove} ${add}`),
      trigger('delete', 'DELETE', remove),
    ],
    fillSql: `INSERT INTO ${name}(rowid, words) SELECT rowid, ${text('')} FROM ${rows} WHERE ${holds('')}`,
  };
}

/** No table of a collection has such a name, and no other table of FTS5 begins with it. */
function ownName(table: string): string {
  return `comity_search:${table}:words`;
}

function triggerName(table: string, on: string): string {
  return `${ownName(table)}:${on}`;
}

/** Creates the index in one transaction with what it can hold already, or drops what is no longer declared. */
export function reconcileWords(
  database: DatabaseSync,
  table: Table,
  index: WordIndex | undefined,
  observe: Observe,
): void {
  const started = performance.now();
  const found = database.prepare('SELECT sql FROM sqlite_schema WHERE name = ?');
  const isCurrent =
    index === undefined
      ? found.get(ownName(table.name)) === undefined
      : index.objects.every(({ name, sql }) => found.get(name)?.sql === sql);
  if (!isCurrent) {
    inTransaction(database, () => {
      for (const on of suffixes) {
        database.exec(`DROP TRIGGER IF EXISTS ${quoteName(triggerName(table.name, on))}`);
      }
      database.exec(`DROP TABLE IF EXISTS ${quoteName(ownName(table.name))}`);
      if (index !== undefined) create(database, index);
    });
    const what = `search index of ${table.name}${index === undefined ? ' dropped' : ''}`;
    observe({ kind: 'store-migrated', what, durationMs: performance.now() - started });
  } else if (index !== undefined && !hasPageOctets(database, table)) setPageOctets(database, index.name);
}

/** `secure-delete` removes the entries of a deleted text at once, where FTS5 would only mark them. */
function create(database: DatabaseSync, { name, objects, fillSql }: WordIndex): void {
  for (const { sql } of objects) database.exec(sql);
  database.exec(`INSERT INTO ${name}(${name}, rank) VALUES ('secure-delete', 1)`);
  setPageOctets(database, name);
  database.exec(fillSql);
}

/**
 * Octets of a page of the index, where 4050 are the default. A search of several words goes to a page for each row that the rarest has, and
 * reads half of it: in 10^6 documents two words, one of 20 documents, take 140 us instead of 280.
 */
const pageOctets = 1000;

/** An index from before this setting keeps its pages, until FTS5 merges what they hold. */
function setPageOctets(database: DatabaseSync, name: string): void {
  database.exec(`INSERT INTO ${name}(${name}, rank) VALUES ('pgsz', ${pageOctets})`);
}

function hasPageOctets(database: DatabaseSync, { name }: Table): boolean {
  const found = database
    .prepare(`SELECT v FROM ${quoteName(`${ownName(name)}_config`)} WHERE k = 'pgsz'`)
    .get();
  return found?.v === pageOctets;
}

export function pendingName({ name }: Table): string {
  return `${name}.unsearched`;
}

/** Name and SQL of the partial index of pending rows, which is empty once the index of words is complete. */
export function pendingIndex(
  table: Table,
  { pendingSql }: WordIndex,
): { readonly name: string; readonly sql: string } {
  const name = pendingName(table);
  return { name, sql: `CREATE INDEX ${quoteName(name)} ON ${quoteName(table.name)}(id) WHERE ${pendingSql}` };
}

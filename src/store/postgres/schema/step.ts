/** One step of a migration, and the statements on indexes that steps consist of. */
import { quoteName } from '../../quote-name.ts';
import { quoteText } from '../quote-text.ts';
import type { Index, Layout } from './schema-layout.ts';

export type Step = {
  /** Description: `table products`, `index products.index["price"]`. */
  readonly what: string;
  readonly sql: readonly string[];
  /** One transaction; otherwise each statement is one, which PostgreSQL requires for CONCURRENTLY. */
  readonly transactional: boolean;
  /** Executed when a statement failed, so that nothing incomplete remains. */
  readonly undo?: readonly string[];
  /** The step only removes things no longer used, or keeps a view for others: the schema can serve without it. */
  readonly tidies?: boolean;
  /** The step makes the search texts of this table's rows, after its statements. */
  readonly fills?: Layout;
  /** The index that the step builds, to find rows that violate it. */
  readonly builds?: { readonly layout: Layout; readonly index: Index };
};

/** `CREATE INDEX` in either form, quoted. */
export function createIndexSql(index: Index, name: string, concurrently: boolean): string {
  return `CREATE ${index.unique ? 'UNIQUE ' : ''}INDEX ${concurrently ? 'CONCURRENTLY ' : ''}${quoteName(name)} ${index.definition}`;
}

/** Removes the index, valid or not, while other processes read and write. */
export function dropIndexSql(schema: string, name: string): string {
  return `DROP INDEX CONCURRENTLY IF EXISTS ${quoteName(schema)}.${quoteName(name)}`;
}

/** Records an index before it is built, so that it is known to be the store's, even if a killed process left it. */
export function noteIndexSql(schema: string, table: string, index: Index, name: string): string {
  const values = [name, table, JSON.stringify(index.fields), index.definition].map(quoteText).join(', ');
  return (
    `INSERT INTO ${quoteName(schema)}.comity_indexes (name, table_name, fields, definition) VALUES (${values}) ` +
    'ON CONFLICT (name) DO UPDATE SET table_name = excluded.table_name, fields = excluded.fields, definition = excluded.definition'
  );
}

export function forgetIndexSql(schema: string, name: string): string {
  return `DELETE FROM ${quoteName(schema)}.comity_indexes WHERE name = ${quoteText(name)}`;
}

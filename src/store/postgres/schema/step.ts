/** One step of bringing a schema up to date: what is done at once, or not at all where it is transactional. */
import { quoteName } from '../../quote-name.ts';
import { quoteText } from '../quote-text.ts';
import type { Index, Layout } from './layout.ts';

export type Step = {
  /** For a person: `table products`, `index products.index["price"]`. */
  readonly what: string;
  readonly sql: readonly string[];
  /** One transaction; otherwise each statement is one, because PostgreSQL builds and drops indexes beside writers only so. */
  readonly transactional: boolean;
  /** Carried out when a statement failed, so that nothing half stays behind. */
  readonly undo?: readonly string[];
  /** The step only removes what is of no use any more: the schema serves without it as well. */
  readonly tidies?: boolean;
  /** The index that the step builds, to say which rows stand in its way. */
  readonly builds?: { readonly layout: Layout; readonly index: Index };
};

/** `CREATE INDEX` in either form, quoted and ready. */
export function createIndexSql(index: Index, name: string, concurrently: boolean): string {
  return `CREATE ${index.unique ? 'UNIQUE ' : ''}INDEX ${concurrently ? 'CONCURRENTLY ' : ''}${quoteName(name)} ${index.definition}`;
}

/** Removes the index, valid or not, while others read and write. */
export function dropIndexSql(schema: string, name: string): string {
  return `DROP INDEX CONCURRENTLY IF EXISTS ${quoteName(schema)}.${quoteName(name)}`;
}

/**
 * Writes the index down in the catalogue of the store. That comes before it is built: whatever stands under the name
 * afterwards is known to be the store's, also what a killed process left.
 */
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

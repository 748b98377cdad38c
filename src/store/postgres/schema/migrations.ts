/**
 * The migrations of the system tables, forwards only and in order: a number that stands in `comity_migrations` is never made
 * again, and a migration that has been released is never edited. The tables of collections are not migrated but
 * compared with what is declared (plan.ts).
 */
import { systemTables } from './migrations/0001-system-tables.ts';

export type Migration = {
  readonly number: number;
  readonly name: string;
  /** The statements, carried out in one transaction; `schema` comes quoted. */
  readonly sql: (schema: string) => readonly string[];
};

export const migrations: readonly Migration[] = [{ number: 1, name: 'system-tables', sql: systemTables }];

/** The number that the schema has when every migration this program knows was made. */
export const schemaNumber: number = migrations.at(-1)?.number ?? 0;

/** The tables in a schema with their counters, declared or not. A backup copies them all, so it needs no configuration. */
import type { FileTable } from '../backup-file/layout.ts';
import { quoteName } from '../quote-name.ts';
import type { Raise } from '../raised-revision.ts';
import { purgedCounter } from '../version-text.ts';
import type { Session } from './schema/session.ts';

export type SchemaTable = FileTable & {
  readonly number: number;
  /** The last revision that touched it. */
  readonly rev: number;
};

export type SchemaTables = {
  /** The store-wide revision. */
  readonly rev: number;
  readonly raises: readonly Raise[];
  /** The greatest revision of the events that were purged. */
  readonly purged: number;
  readonly tables: readonly SchemaTable[];
};

export async function readSchemaTables(session: Session, schema: string): Promise<SchemaTables> {
  const found = await session.rows(
    `SELECT n, name, rev, EXISTS (
       SELECT FROM pg_catalog.pg_attribute
       WHERE attrelid = to_regclass(format('%I.%I', $1::text, name)) AND attname = 'search' AND NOT attisdropped
     ), EXISTS (
       SELECT FROM pg_catalog.pg_attribute
       WHERE attrelid = to_regclass(format('%I.%I', $1::text, name)) AND attname = 'former' AND NOT attisdropped
     ) FROM ${quoteName(schema)}.comity_counters ORDER BY n`,
    [schema],
  );
  const counted = found.map(([number, name, rev, searched, traced]) => ({
    number: Number(number),
    name: String(name),
    rev: Number(rev),
    searched: searched === true,
    traced: traced === true,
  }));
  const raises = await session.rows(
    `SELECT before, after, made_at FROM ${quoteName(schema)}.comity_raises ORDER BY before`,
  );
  return {
    raises: raises.map(([before, after, madeAt]) => ({
      before: Number(before),
      after: Number(after),
      madeAt: Number(madeAt),
    })),
    rev: counted.find(({ number }) => number === 0)?.rev ?? 0,
    purged: counted.find(({ number }) => number === purgedCounter)?.rev ?? 0,
    tables: counted.filter(({ number }) => number > 0),
  };
}

/** A table's name in SQL, with its schema. */
export function nameIn(schema: string, table: FileTable): string {
  return `${quoteName(schema)}.${quoteName(table.name)}`;
}

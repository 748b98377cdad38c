/** Reads the schema's present state from both catalogues, and this user's rights. plan.ts compares it with the declaration. */
import type { FileTable } from '../../backup-file/file-format.ts';
import { purgedCounter, type Raise } from '../../revision.ts';
import { quoteName } from '../../sql-text.ts';
import type { TableNumbers } from './schema-layout.ts';
import type { Session } from './session.ts';

type FoundTable = {
  readonly columns: ReadonlySet<string>;
  /** Those of SELECT, INSERT, UPDATE and DELETE that this user lacks. */
  readonly rightsMissing: readonly string[];
  /** True if this user may alter it. */
  readonly owned: boolean;
};

type FoundIndex = {
  readonly table: string;
  /** False for the remains of an interrupted CREATE INDEX CONCURRENTLY. */
  readonly valid: boolean;
};

export type FoundView = {
  readonly comment: string;
  /** True if another object was built upon it. */
  readonly isUsed: boolean;
};

/** An index in the store's own catalogue. */
type NotedIndex = { readonly table: string; readonly definition: string };

export type Found = {
  readonly schemaExists: boolean;
  /** True if this user may create tables in it, or the schema itself if it is missing. */
  readonly mayCreate: boolean;
  readonly mayUse: boolean;
  /** Numbers of the migrations made; empty for a schema without a store. */
  readonly migrations: ReadonlySet<number>;
  readonly tables: ReadonlyMap<string, FoundTable>;
  /** Names of objects other than tables and indexes. */
  readonly others: ReadonlySet<string>;
  readonly views: ReadonlyMap<string, FoundView>;
  readonly indexes: ReadonlyMap<string, FoundIndex>;
  readonly noted: ReadonlyMap<string, NotedIndex>;
  readonly numbers: TableNumbers;
};

/** @throws DatabaseFailed */
export async function inspectSchema(session: Session, schema: string): Promise<Found> {
  const [rights] = await session.rows(rightsSql, [schema]);
  const [schemaExists = false, mayUse = false, mayCreate = false] = (rights ?? []) as readonly boolean[];
  const { tables, others } = await readRelations(session, schema);
  const indexes = await readIndexes(session, schema);
  const mayRead = (table: string): boolean =>
    mayUse && tables.get(table)?.rightsMissing.includes('SELECT') === false;
  const own = `${quoteName(schema)}.comity_`;
  const read = async (table: string, columns: string) =>
    mayRead(`comity_${table}`) ? await session.rows(`SELECT ${columns} FROM ${own}${table}`) : [];
  const migrations = await read('migrations', 'number');
  const noted = await read('indexes', 'name, table_name, definition');
  const counters = await read('counters', 'name, n');
  return {
    schemaExists,
    mayCreate,
    mayUse,
    migrations: new Set(migrations.map(([number]) => Number(number))),
    tables,
    others,
    views: await readViews(session, schema),
    indexes,
    noted: new Map(
      noted.map(([name, table, definition]) => [
        String(name),
        { table: String(table), definition: String(definition) },
      ]),
    ),
    // Row 0 is the revision of the whole store.
    numbers: new Map(counters.filter(([, n]) => n !== 0).map(([name, n]) => [String(name), Number(n)])),
  };
}

/** Reads if the schema exists, may be used, and may be added to; for a missing one the last two concern its creation. */
const rightsSql = `
SELECT n.oid IS NOT NULL,
  coalesce(has_schema_privilege(n.oid, 'USAGE'), true),
  coalesce(has_schema_privilege(n.oid, 'CREATE'), has_database_privilege(current_database(), 'CREATE'))
FROM (VALUES ($1::text)) AS wanted (name) LEFT JOIN pg_catalog.pg_namespace n ON n.nspname = wanted.name`;

const relationsSql = `
SELECT c.relname, c.relkind::text, pg_catalog.pg_has_role(c.relowner, 'USAGE'),
  has_table_privilege(c.oid, 'SELECT'), has_table_privilege(c.oid, 'INSERT'),
  has_table_privilege(c.oid, 'UPDATE'), has_table_privilege(c.oid, 'DELETE'),
  coalesce((SELECT json_agg(a.attname) FROM pg_catalog.pg_attribute a
    WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped), '[]')
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = $1::text AND c.relkind NOT IN ('i', 'I', 't')`;

const privileges = ['SELECT', 'INSERT', 'UPDATE', 'DELETE'];

async function readRelations(session: Session, schema: string): Promise<Pick<Found, 'tables' | 'others'>> {
  const tables = new Map<string, FoundTable>();
  const others = new Set<string>();
  for (const [name, kind, owned, ...rest] of await session.rows(relationsSql, [schema])) {
    // A partitioned table is a table as well.
    if (kind !== 'r' && kind !== 'p') others.add(String(name));
    else {
      tables.set(String(name), {
        columns: new Set(JSON.parse(String(rest.at(-1))) as readonly string[]),
        rightsMissing: privileges.filter((_, at) => rest[at] !== true),
        owned: owned === true,
      });
    }
  }
  return { tables, others };
}

/** A rule of another object that depends on the view shows that a view was built upon it. */
const viewsSql = `
SELECT c.relname, coalesce(obj_description(c.oid, 'pg_class'), ''), EXISTS (
  SELECT FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_rewrite r ON r.oid = d.objid
  WHERE d.classid = 'pg_rewrite'::regclass AND d.refobjid = c.oid AND r.ev_class <> c.oid)
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = $1::text AND c.relkind = 'v'`;

async function readViews(session: Session, schema: string): Promise<Found['views']> {
  const rows = await session.rows(viewsSql, [schema]);
  return new Map(
    rows.map(([name, comment, isUsed]) => [
      String(name),
      { comment: String(comment), isUsed: isUsed === true },
    ]),
  );
}

const indexesSql = `
SELECT i.relname, t.relname, x.indisvalid AND x.indisready AND x.indislive
FROM pg_catalog.pg_index x
JOIN pg_catalog.pg_class i ON i.oid = x.indexrelid
JOIN pg_catalog.pg_class t ON t.oid = x.indrelid
JOIN pg_catalog.pg_namespace n ON n.oid = i.relnamespace
WHERE n.nspname = $1::text`;

async function readIndexes(session: Session, schema: string): Promise<Found['indexes']> {
  const rows = await session.rows(indexesSql, [schema]);
  return new Map(
    rows.map(([name, table, valid]) => [String(name), { table: String(table), valid: valid === true }]),
  );
}

/* The tables in a schema with their counters, declared or not. A backup copies them all, so it needs no configuration. */

export type SchemaTable = FileTable & {
  readonly number: number;
  /** The last revision that touched it. */
  readonly rev: number;
};

type SchemaTables = {
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

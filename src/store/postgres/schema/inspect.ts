/** Reads the schema's present state from both catalogues, and this user's rights. plan.ts compares it with the declaration. */
import { quoteName } from '../../quote-name.ts';
import type { TableNumbers } from './schema-layout.ts';
import type { Session } from './session.ts';

export type FoundTable = {
  readonly columns: ReadonlySet<string>;
  /** Those of SELECT, INSERT, UPDATE and DELETE that this user lacks. */
  readonly rightsMissing: readonly string[];
  /** True if this user may alter it. */
  readonly owned: boolean;
};

export type FoundIndex = {
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
export type NotedIndex = { readonly table: string; readonly definition: string };

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

/** Whether the schema exists, may be used, and may be added to; for a missing one the last two concern its creation. */
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

/**
 * What stands in the schema, read from the server's catalogue and from the store's own one, and what this user may do there.
 * It only reads; plan.ts compares it with what is declared.
 */
import { quoteName } from '../../quote-name.ts';
import type { TableNumbers } from './layout.ts';
import type { Session } from './session.ts';

export type FoundTable = {
  readonly columns: ReadonlySet<string>;
  /** Which of SELECT, INSERT, UPDATE and DELETE this user lacks. */
  readonly rightsMissing: readonly string[];
  /** Whether this user may change its shape. */
  readonly owned: boolean;
};

export type FoundIndex = {
  readonly table: string;
  /** False for what an interrupted CREATE INDEX CONCURRENTLY left. */
  readonly valid: boolean;
};

/** An index as the store wrote it down when it made it. */
export type NotedIndex = { readonly table: string; readonly definition: string };

export type Found = {
  readonly schemaExists: boolean;
  /** Whether this user may make tables in it, or the schema itself where it is missing. */
  readonly mayCreate: boolean;
  /** Whether this user may use what is in it. */
  readonly mayUse: boolean;
  /** Numbers of the migrations made; empty where the store was never made here. */
  readonly migrations: ReadonlySet<number>;
  readonly tables: ReadonlyMap<string, FoundTable>;
  /** Names that are taken by something else than a table or an index. */
  readonly others: ReadonlySet<string>;
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

/** Whether the schema is there, may be used, and may be added to; the last two of a missing one are those of making it. */
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
    // A partitioned table is one as well.
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

/**
 * The ordered steps from the present schema to the declared one. Pure: equal inputs give equal plans, so a plan can be shown before it
 * runs, and an interrupted one is planned again from the present state.
 * Forwards only, and no row is ever lost: tables no longer declared keep their rows and indexes, and so do indexes that the store did not
 * make. Other processes continue meanwhile: indexes are built and dropped CONCURRENTLY, and a step with an exclusive lock is one short
 * statement.
 */
import { hash } from 'node:crypto';
import type { Field } from '../../../model/field.ts';
import { foldedLetters } from '../../../model/fold-case.ts';
import { viewColumns, viewName } from '../../declared-indexes.ts';
import { kindOf } from '../../field-value.ts';
import { quoteName } from '../../sql-text.ts';
import { eventsTable } from '../../store.ts';
import { memberSql, quoteText, timestampSql, valueSql } from '../compile/expressions.ts';
import type { Found, FoundView } from './inspect.ts';
import { type Index, type Layout, physicalName, searchColumn, tracedColumns } from './schema-layout.ts';

export type PlanOptions = {
  readonly schema: string;
  readonly layouts: readonly Layout[];
  /** Keeps indexes no longer declared, which processes of the last declaration still use. */
  readonly keepsUndeclared?: boolean;
  /** Version of the program, recorded with the migrations it makes. */
  readonly program: string;
  /** Milliseconds since the epoch. */
  readonly now: number;
};

export function planSteps(found: Found, options: PlanOptions): readonly Step[] {
  const { layouts } = options;
  return [
    ...schemaSteps(found, options),
    ...migrationSteps(found, options),
    ...layouts.flatMap((layout) => tableSteps(found, layout, options)),
    ...layouts.flatMap((layout) => indexSteps(found, layout, options)),
    ...layouts.flatMap((layout) => obsoleteIndexSteps(found, layout, options)),
    ...layouts.flatMap((layout) => viewSteps(found, layout, options.schema)),
  ];
}

/** What the schema lacks before it can serve, a short description each; empty if nothing. */
export function missingThings(steps: readonly Step[]): readonly string[] {
  return [...new Set(steps.filter(({ tidies }) => tidies !== true).map(({ what }) => what))];
}

/** Names of declared tables that other objects in the schema have. */
export function occupiedNames(found: Found, layouts: readonly Layout[]): readonly string[] {
  return layouts
    .map(({ table }) => table.name)
    .filter((name) => found.others.has(name) || (found.tables.has(name) && !found.numbers.has(name)));
}

function schemaSteps({ schemaExists }: Found, { schema }: PlanOptions): readonly Step[] {
  if (schemaExists) return [];
  return [{ what: `schema ${schema}`, sql: [`CREATE SCHEMA ${quoteName(schema)}`], transactional: true }];
}

function migrationSteps({ migrations: made }: Found, options: PlanOptions): readonly Step[] {
  const { schema, program, now } = options;
  return migrations
    .filter(({ number }) => !made.has(number))
    .map(({ number, name, sql }) => ({
      what: `migration ${String(number).padStart(4, '0')}-${name}`,
      sql: [
        ...sql(quoteName(schema)),
        `INSERT INTO ${quoteName(schema)}.comity_migrations (number, name, made_at, program) ` +
          `VALUES (${number}, ${quoteText(name)}, ${now}, ${quoteText(program)})`,
      ],
      transactional: true,
    }));
}

function tableSteps(found: Found, layout: Layout, { schema }: PlanOptions): readonly Step[] {
  const { name } = layout.table;
  const existing = found.tables.get(name);
  if (existing === undefined) {
    const counter =
      `INSERT INTO ${quoteName(schema)}.comity_counters (n, name, rev) ` +
      `SELECT max(n) + 1, ${quoteText(name)}, 0 FROM ${quoteName(schema)}.comity_counters`;
    // No other process uses the table yet, so its indexes are created with it.
    const indexes = indexesOf(layout).flatMap((index) => [
      noteIndexSql(schema, name, index, index.name),
      createIndexSql(index, index.name, false),
    ]);
    const sql = [layout.createSql, ...(found.numbers.has(name) ? [] : [counter]), ...indexes];
    return [{ what: `table ${name}`, sql, transactional: true }];
  }
  if (name === eventsTable && !existing.columns.has('former')) {
    const added = tracedColumns.map((column) => `ADD COLUMN IF NOT EXISTS ${column}`).join(', ');
    return [
      { what: 'columns of history', sql: [`ALTER TABLE ${layout.name} ${added}`], transactional: true },
    ];
  }
  if (!layout.table.searched || existing.columns.has('search')) return [];
  // Search finds rows written before this column existed after their next write.
  const sql = [`ALTER TABLE ${layout.name} ADD COLUMN ${searchColumn}`];
  return [{ what: `search text of ${name}`, sql, transactional: true }];
}

function indexSteps(found: Found, layout: Layout, { schema }: PlanOptions): readonly Step[] {
  if (!found.tables.has(layout.table.name)) return [];
  return indexesOf(layout).flatMap((index) => {
    const existing = found.indexes.get(index.name);
    const isDeclared = found.noted.get(index.name)?.definition === index.definition;
    if (existing?.valid === true && isDeclared) return leftoverSteps(found, schema, index);
    const before = index === layout.search?.words ? [fillStep(layout)] : [];
    if (existing?.valid === true) return [...before, ...replacingSteps(found, layout, schema, index)];
    const build = buildStep(layout, schema, index, index.name);
    return [
      ...leftoverSteps(found, schema, index),
      ...invalidSteps(found, schema, index.name),
      ...before,
      build,
    ];
  });
}

/** The index of words comes last: it is built once all rows have their text, and so shows that they have. */
function indexesOf({ indexes, search }: Layout): readonly Index[] {
  return search === undefined ? indexes : [...indexes, search.pending, search.words];
}

/** Temporary names of a replacement: of the new index until it is built, and of the old one until it is dropped. */
const nextName = (index: Index): string => physicalName(`${index.name}~next`);
const lastName = (index: Index): string => physicalName(`${index.name}~last`);

/** Builds the new index before it drops the old one, so that reads stay fast and a unique field stays unique. */
function replacingSteps(found: Found, layout: Layout, schema: string, index: Index): readonly Step[] {
  const next = nextName(index);
  const last = lastName(index);
  const old = found.noted.get(index.name)?.definition ?? '';
  const isBuilt =
    found.indexes.get(next)?.valid === true && found.noted.get(next)?.definition === index.definition;
  const rename = (from: string, to: string): string =>
    `ALTER INDEX ${quoteName(schema)}.${quoteName(from)} RENAME TO ${quoteName(to)}`;
  return [
    ...removalSteps(found, schema, last),
    ...(isBuilt ? [] : [...removalSteps(found, schema, next), buildStep(layout, schema, index, next)]),
    {
      what: `index ${index.name} replaced by its new form`,
      sql: [
        noteIndexSql(schema, layout.table.name, { ...index, definition: old }, last),
        rename(index.name, last),
        rename(next, index.name),
        noteIndexSql(schema, layout.table.name, index, index.name),
        forgetIndexSql(schema, next),
      ],
      transactional: true,
    },
    removalStep(schema, last),
  ];
}

/** Removes the remains of an interrupted replacement. */
function leftoverSteps(found: Found, schema: string, index: Index): readonly Step[] {
  return [nextName(index), lastName(index)].flatMap((name) => removalSteps(found, schema, name));
}

function invalidSteps(found: Found, schema: string, name: string): readonly Step[] {
  return found.indexes.get(name)?.valid === false ? [removalStep(schema, name)] : [];
}

function removalSteps(found: Found, schema: string, name: string): readonly Step[] {
  return found.indexes.has(name) || found.noted.has(name) ? [removalStep(schema, name)] : [];
}

function buildStep(layout: Layout, schema: string, index: Index, name: string): Step {
  return {
    what: `index ${index.name}`,
    sql: [noteIndexSql(schema, layout.table.name, index, name), createIndexSql(index, name, true)],
    transactional: false,
    undo: [dropIndexSql(schema, name), forgetIndexSql(schema, name)],
    builds: { layout, index },
  };
}

function fillStep(layout: Layout): Step {
  return { what: `search texts of ${layout.table.name}`, sql: [], transactional: false, fills: layout };
}

/** Removes the catalogue entry last, so that a killed process leaves a step to do. */
function removalStep(schema: string, name: string): Step {
  return {
    what: `index ${name} dropped`,
    sql: [dropIndexSql(schema, name), forgetIndexSql(schema, name)],
    transactional: false,
    tidies: true,
  };
}

/** Drops indexes that the store made for an earlier declaration. Other indexes are not in the catalogue, and stay. */
function obsoleteIndexSteps(
  found: Found,
  layout: Layout,
  { schema, keepsUndeclared }: PlanOptions,
): readonly Step[] {
  if (keepsUndeclared === true) return [];
  const kept = new Set(indexesOf(layout).flatMap((index) => [index.name, nextName(index), lastName(index)]));
  return [...found.noted]
    .filter(([name, { table }]) => table === layout.table.name && !kept.has(name))
    .map(([name]) => removalStep(schema, name));
}

// The views of collections in PostgreSQL, with typed columns. A value that does not have the type of its field, as in documents of an
// earlier schema, is null: one such value must not fail every query of a tool.
//
// A view never stands in the way of the program: `comity migrate` replaces it, and no start waits for it. If another view uses
// it, PostgreSQL does not drop it: it is set aside under another name, which the other view follows, and removed once nothing uses it.
// Privileges that were granted on it are granted again.

/** Begins the comment of each view, and is followed by a digest of its definition. */
const ownMark = 'Kept by comity: ';

function viewSteps(
  found: Pick<Found, 'views' | 'others' | 'tables'>,
  layout: Layout,
  schema: string,
): readonly Step[] {
  if (layout.table.view !== true) return [];
  const name = physicalName(viewName(layout.table));
  const sql = selectSql(layout);
  const comment = `${ownMark}${hash('sha256', sql, 'hex').slice(0, 16)}`;
  const existing = found.views.get(name);
  const aside = asideSteps(found, name, schema);
  if (existing?.comment === comment) return aside;
  const isForeign = existing === undefined ? found.others.has(name) : !isOwn(existing);
  if (isForeign || found.tables.has(name)) return aside;
  const quoted = `${quoteName(schema)}.${quoteName(name)}`;
  const create = [`CREATE VIEW ${quoted} AS ${sql}`, `COMMENT ON VIEW ${quoted} IS ${quoteText(comment)}`];
  const made = existing === undefined ? create : [replaceSql(quoted, name, create)];
  return [{ what: `view ${name}`, sql: made, transactional: true, tidies: true }, ...aside];
}

function isOwn({ comment }: FoundView): boolean {
  return comment.startsWith(ownMark);
}

/** Views that were set aside and that nothing uses any more. */
function asideSteps({ views }: Pick<Found, 'views'>, name: string, schema: string): readonly Step[] {
  return [...views]
    .filter(([other, view]) => isOwn(view) && !view.isUsed && isAside(other, name))
    .map(([other]) => ({
      what: `view ${other} dropped`,
      sql: [`DROP VIEW IF EXISTS ${quoteName(schema)}.${quoteName(other)}`],
      transactional: true,
      tidies: true,
    }));
}

/** Octets of a name before a tilde and 16 characters: of a name, 63 octets count. */
function asidePrefix(name: string): string {
  return name.slice(0, 44);
}

const asideEnd = /~[0-9a-f]{16}$/;

function isAside(other: string, name: string): boolean {
  return other.startsWith(`${asidePrefix(name)}~`) && asideEnd.test(other);
}

/** One block, because a step that fails half way must leave the old view. */
function replaceSql(quoted: string, name: string, create: readonly string[]): string {
  const formatted = quoted.replaceAll("'", "''").replaceAll('%', '%%');
  return `DO $view$
DECLARE
  granted record;
  privileges aclitem[] := (SELECT relacl FROM pg_catalog.pg_class WHERE oid = ${quoteText(quoted)}::regclass);
BEGIN
  BEGIN
    DROP VIEW ${quoted};
  EXCEPTION WHEN dependent_objects_still_exist THEN
    EXECUTE format('ALTER VIEW ${formatted} RENAME TO %I', ${quoteText(`${asidePrefix(name)}~`)} || left(md5(random()::text), 16));
  END;
  ${create.join(';\n  ')};
  FOR granted IN SELECT grantee, privilege_type, is_grantable FROM aclexplode(privileges) LOOP
    EXECUTE format('GRANT %s ON ${formatted} TO %s%s', granted.privilege_type,
      CASE WHEN granted.grantee = 0 THEN 'PUBLIC' ELSE granted.grantee::regrole::text END,
      CASE WHEN granted.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END);
  END LOOP;
END
$view$`;
}

function selectSql(layout: Layout): string {
  const columns = [
    'id',
    'owner',
    'to_timestamp(created_at / 1000.0) AS created_at',
    'to_timestamp(updated_at / 1000.0) AS updated_at',
    ...viewColumns(layout.table).map(
      ({ name, field }) => `${columnSql(field)} AS ${quoteName(physicalName(name))}`,
    ),
  ];
  return `SELECT ${columns.join(', ')} FROM ${layout.name} WHERE deleted_at IS NULL`;
}

function columnSql(field: Field): string {
  switch (kindOf(field)) {
    case 'none':
      return `nullif(${memberSql(field)}, 'null'::jsonb)`;
    case 'boolean':
      return `(${valueSql(field)} = 1)`;
    case 'number':
      return field.type === 'integer' ? integerSql(valueSql(field)) : valueSql(field);
    case 'instant':
      return timestampSql(valueSql({ ...field, type: 'string' }));
    case 'text':
    case 'time':
      return valueSql(field);
  }
}

/** Integers of JSON are exact up to 2^53. */
function integerSql(value: string): string {
  return `(CASE WHEN abs(${value}) <= 9007199254740992 AND ${value} = trunc(${value}) THEN ${value}::bigint END)`;
}

/* One step of a migration, and the statements on indexes that steps consist of. */

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
function createIndexSql(index: Index, name: string, concurrently: boolean): string {
  return `CREATE ${index.unique ? 'UNIQUE ' : ''}INDEX ${concurrently ? 'CONCURRENTLY ' : ''}${quoteName(name)} ${index.definition}`;
}

/** Removes the index, valid or not, while other processes read and write. */
function dropIndexSql(schema: string, name: string): string {
  return `DROP INDEX CONCURRENTLY IF EXISTS ${quoteName(schema)}.${quoteName(name)}`;
}

/** Records an index before it is built, so that it is known to be the store's, even if a killed process left it. */
function noteIndexSql(schema: string, table: string, index: Index, name: string): string {
  const values = [name, table, JSON.stringify(index.fields), index.definition].map(quoteText).join(', ');
  return (
    `INSERT INTO ${quoteName(schema)}.comity_indexes (name, table_name, fields, definition) VALUES (${values}) ` +
    'ON CONFLICT (name) DO UPDATE SET table_name = excluded.table_name, fields = excluded.fields, definition = excluded.definition'
  );
}

function forgetIndexSql(schema: string, name: string): string {
  return `DELETE FROM ${quoteName(schema)}.comity_indexes WHERE name = ${quoteText(name)}`;
}

/*
 * The migrations of the system tables, forwards only and in order: a number in `comity_migrations` is never run again, and a released
 * migration is never edited. The tables of collections are compared with the declaration instead.
 */

/**
 * The store's own tables, and the functions of its statements.
 * `comity_counters`: row 0 is the store-wide revision, whose lock every commit holds; one row per table is its version. Its few rows change
 * with every commit, so pages stay nearly empty: new versions of a row fit beside the old one without a new index entry (HOT). Autovacuum
 * starts by the number of changes, not by their share of a tiny table.
 */
export function systemTables(schema: string): readonly string[] {
  const hot =
    'fillfactor = 10, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 0';
  return [
    // The migrations made, when (milliseconds since the epoch) and by which version of the program.
    `CREATE TABLE ${schema}.comity_migrations (
  number integer PRIMARY KEY,
  name text COLLATE "C" NOT NULL,
  made_at bigint NOT NULL,
  program text NOT NULL
)`,
    `CREATE TABLE ${schema}.comity_counters (
  n integer PRIMARY KEY,
  name text COLLATE "C" NOT NULL UNIQUE,
  rev bigint NOT NULL
) WITH (${hot})`,
    `INSERT INTO ${schema}.comity_counters (n, name, rev) VALUES (0, '', 0)`,
    // The store's indexes: their fields by the clients' names, and their definitions.
    `CREATE TABLE ${schema}.comity_indexes (
  name text COLLATE "C" PRIMARY KEY,
  table_name text COLLATE "C" NOT NULL,
  fields json NOT NULL,
  definition text NOT NULL
)`,
    // The last batch of each writer, by which a writer whose connection broke learns if it was committed.
    `CREATE TABLE ${schema}.comity_writers (
  writer text COLLATE "C" PRIMARY KEY,
  epoch bigint NOT NULL,
  batch bigint NOT NULL,
  first_rev bigint NOT NULL,
  last_rev bigint NOT NULL,
  seen_at bigint NOT NULL
) WITH (${hot})`,
    // Counts that a crash may lose, and that need no log.
    `CREATE UNLOGGED TABLE ${schema}.comity_tallies (
  key text COLLATE "C" PRIMARY KEY,
  total bigint NOT NULL,
  expires_at bigint NOT NULL
) WITH (fillfactor = 50)`,
    `CREATE TABLE ${schema}.comity_processes (
  process text COLLATE "C" PRIMARY KEY,
  seen_at bigint NOT NULL,
  facts text NOT NULL
)`,
    // Fails the transaction unless the two are equal. VOLATILE, so that no planner omits a call or makes it early.
    `CREATE FUNCTION ${schema}.comity_expect(actual bigint, wanted bigint, what text) RETURNS bigint
LANGUAGE plpgsql VOLATILE AS $body$
BEGIN
  IF actual IS DISTINCT FROM wanted THEN
    RAISE EXCEPTION USING ERRCODE = 'CM001', MESSAGE = what;
  END IF;
  RETURN actual;
END
$body$`,
    // Never called: it makes plans that would call it look expensive (compile/expressions.ts). IMMUTABLE, so that a bound may contain it.
    `CREATE FUNCTION ${schema}.comity_costly(value text) RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE COST 10000 AS $body$
BEGIN
  RETURN value;
END
$body$`,
  ];
}

type Migration = {
  readonly number: number;
  readonly name: string;
  /** The statements of one transaction; `schema` is quoted. */
  readonly sql: (schema: string) => readonly string[];
};

/** The ranges over which the counter was raised (revision.ts), each with the server that the store was on. */
function raises(schema: string): readonly string[] {
  return [
    `CREATE TABLE ${schema}.comity_raises (
  before bigint PRIMARY KEY,
  after bigint NOT NULL,
  made_at bigint NOT NULL,
  server text COLLATE "C" NOT NULL
)`,
  ];
}

/**
 * Folds case by the table of model/fold-case.ts, whatever the server's locale and its version of Unicode, on which no index may depend.
 * `lower` of the collation "C" folds ASCII. `translate` looks through its table for each character: a text of 25 takes 170 us with one letter
 * beyond ASCII, and 3 us without, because it is returned before.
 */
function fold(schema: string): readonly string[] {
  const from = [...foldedLetters.keys()].join('');
  const to = [...foldedLetters.values()].join('');
  return [
    `CREATE FUNCTION ${schema}.comity_fold(value text) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $body$
BEGIN
  value := lower(value COLLATE "C");
  IF octet_length(value) = length(value) THEN RETURN value; END IF;
  RETURN translate(value, '${from}', '${to}');
END
$body$`,
  ];
}

export const migrations: readonly Migration[] = [
  { number: 1, name: 'system-tables', sql: systemTables },
  { number: 2, name: 'raises', sql: raises },
  { number: 3, name: 'fold', sql: fold },
];

/** The number of a schema with every migration of this version. */
export const schemaNumber: number = migrations.at(-1)?.number ?? 0;

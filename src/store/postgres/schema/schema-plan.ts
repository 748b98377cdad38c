/**
 * The ordered steps from the present schema to the declared one. Pure: equal inputs give equal plans, so a plan can be shown before it
 * runs, and an interrupted one is planned again from the present state.
 * Forwards only, and no row is ever lost: tables no longer declared keep their rows and indexes, and so do indexes that the store did not
 * make. Other processes continue meanwhile: indexes are built and dropped CONCURRENTLY, and a step with an exclusive lock is one short
 * statement.
 */

import { hash } from 'node:crypto';
import type { Field } from '../../../model/field.ts';
import { kindOf } from '../../field-value.ts';
import { quoteName } from '../../quote-name.ts';
import { eventsTable } from '../../store.ts';
import { viewColumns, viewName } from '../../view-columns.ts';
import { memberSql, valueSql } from '../compile/value.ts';
import { quoteText } from '../quote-text.ts';
import type { Found, FoundView } from './inspect.ts';
import { migrations } from './migrations.ts';
import { physicalName } from './physical-name.ts';
import { type Index, type Layout, searchColumn, tracedColumns } from './schema-layout.ts';
import { createIndexSql, dropIndexSql, forgetIndexSql, noteIndexSql, type Step } from './step.ts';

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

const leapYear = '([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)';
const date = `((?!0000)[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])|(?!0000)[0-9]{4}-(0[13-9]|1[0-2])-(29|30)|(?!0000)[0-9]{4}-(0[13578]|1[02])-31|(?!0000)${leapYear}-02-29)`;
const time = '([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,9})?([Zz]|[+-](0[0-9]|1[0-4]):[0-5][0-9])';

/** Only dates that exist: the cast of another would be an error. */
function timestampSql(value: string): string {
  return `(CASE WHEN ${value} ~ '^${date}[Tt]${time}$' THEN ${value}::timestamptz END)`;
}

/**
 * The views of collections in PostgreSQL, with typed columns. A value that does not have the type of its field, as in documents of an
 * earlier schema, is null: one such value must not fail every query of a tool.
 *
 * A view never stands in the way of the program: `comity migrate` replaces it, and no start waits for it. If someone built a view upon
 * it, PostgreSQL does not drop it: it is set aside under another name, which the other view follows, and removed once nothing uses it.
 * Privileges that were granted on it are granted again.
 */
import { hash } from 'node:crypto';
import type { Field } from '../../../model/field.ts';
import { kindOf } from '../../field-value.ts';
import { quoteName } from '../../quote-name.ts';
import { viewColumns, viewName } from '../../view-columns.ts';
import { memberSql, valueSql } from '../compile/value.ts';
import { quoteText } from '../quote-text.ts';
import type { Found, FoundView } from './inspect.ts';
import { physicalName } from './physical-name.ts';
import type { Layout } from './schema-layout.ts';
import type { Step } from './step.ts';

/** Begins the comment of each view, and is followed by a digest of its definition. */
const ownMark = 'Kept by comity: ';

export function viewSteps(
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

/** What precedes a tilde and 16 characters of a name, of which 63 octets count. */
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

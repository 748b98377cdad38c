/**
 * The ordered steps from the present schema to the declared one. Pure: equal inputs give equal plans, so a plan can be shown before it
 * runs, and an interrupted one is planned again from the present state.
 * Forwards only, and no row is ever lost: tables no longer declared keep their rows and indexes, and so do indexes that the store did not
 * make. Other processes continue meanwhile: indexes are built and dropped CONCURRENTLY, and a step with an exclusive lock is one short
 * statement.
 */
import { quoteName } from '../../quote-name.ts';
import { eventsTable } from '../../store.ts';
import { quoteText } from '../quote-text.ts';
import type { Found } from './inspect.ts';
import { migrations } from './migrations.ts';
import { physicalName } from './physical-name.ts';
import { type Index, type Layout, searchColumn, tracedColumns } from './schema-layout.ts';
import { createIndexSql, dropIndexSql, forgetIndexSql, noteIndexSql, type Step } from './step.ts';
import { viewSteps } from './views.ts';

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

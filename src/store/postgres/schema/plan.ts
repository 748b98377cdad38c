/**
 * The steps from what stands to what is declared, in order. Pure: the same two always give the same plan, so that a plan can be
 * shown before it is carried out, and one that was interrupted is simply made again from what then stands.
 *
 * Forwards only, and never a row is lost: tables no longer declared stay as they are, with their indexes, and so does every index
 * that the store did not make. What others do meanwhile goes on: indexes are built and dropped CONCURRENTLY, and what
 * needs a table for itself is one short statement.
 */
import { quoteName } from '../../quote-name.ts';
import { quoteText } from '../quote-text.ts';
import type { Found } from './inspect.ts';
import { type Index, type Layout, searchColumn } from './layout.ts';
import { migrations } from './migrations.ts';
import { physicalName } from './physical-name.ts';
import { createIndexSql, dropIndexSql, forgetIndexSql, noteIndexSql, type Step } from './step.ts';

export type PlanOptions = {
  readonly schema: string;
  readonly layouts: readonly Layout[];
  /** Keeps indexes that are declared no more, by which processes of the last declaration still read. */
  readonly keepsUndeclared?: boolean;
  /** Version of the program, kept with the migrations it makes. */
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
  ];
}

/** What the schema lacks before it can serve, in a few words each; empty when it can. */
export function missingThings(steps: readonly Step[]): readonly string[] {
  return [...new Set(steps.filter(({ tidies }) => tidies !== true).map(({ what }) => what))];
}

/** Names of declared tables that something else has in this schema. */
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
  const stands = found.tables.get(name);
  if (stands === undefined) {
    const counter =
      `INSERT INTO ${quoteName(schema)}.comity_counters (n, name, rev) ` +
      `SELECT max(n) + 1, ${quoteText(name)}, 0 FROM ${quoteName(schema)}.comity_counters`;
    // Nobody reads or writes the table yet: its indexes are made along with it.
    const indexes = layout.indexes.flatMap((index) => [
      noteIndexSql(schema, name, index, index.name),
      createIndexSql(index, index.name, false),
    ]);
    const sql = [layout.createSql, ...(found.numbers.has(name) ? [] : [counter]), ...indexes];
    return [{ what: `table ${name}`, sql, transactional: true }];
  }
  if (!layout.table.searched || stands.columns.has('search')) return [];
  // Rows written before are found by their text once they are written the next time.
  const sql = [`ALTER TABLE ${layout.name} ADD COLUMN ${searchColumn}`];
  return [{ what: `search text of ${name}`, sql, transactional: true }];
}

function indexSteps(found: Found, layout: Layout, { schema }: PlanOptions): readonly Step[] {
  if (!found.tables.has(layout.table.name)) return [];
  return layout.indexes.flatMap((index) => {
    const stands = found.indexes.get(index.name);
    const isDeclared = found.noted.get(index.name)?.definition === index.definition;
    if (stands?.valid === true && isDeclared) return leftoverSteps(found, schema, index);
    if (stands?.valid === true) return replacingSteps(found, layout, schema, index);
    const build = buildStep(layout, schema, index, index.name);
    return [...leftoverSteps(found, schema, index), ...invalidSteps(found, schema, index.name), build];
  });
}

/** Where an index that is being replaced stands until it is whole, and where the one it replaces goes. */
const nextName = (index: Index): string => physicalName(`${index.name}~next`);
const lastName = (index: Index): string => physicalName(`${index.name}~last`);

/** The new index is whole before the old one goes, so that reads stay quick and a unique field stays unique throughout. */
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
      what: `index ${index.name} put in the place of its last form`,
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

/** What a replacement that was interrupted left. */
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

/** The catalogue forgets it last: a process that is killed in between finds the rest to do. */
function removalStep(schema: string, name: string): Step {
  return {
    what: `index ${name} dropped`,
    sql: [dropIndexSql(schema, name), forgetIndexSql(schema, name)],
    transactional: false,
    tidies: true,
  };
}

/** Indexes that the store made for a declaration that is no more. Others' are not in the catalogue, and stay. */
function obsoleteIndexSteps(
  found: Found,
  layout: Layout,
  { schema, keepsUndeclared }: PlanOptions,
): readonly Step[] {
  if (keepsUndeclared === true) return [];
  const kept = new Set(layout.indexes.flatMap((index) => [index.name, nextName(index), lastName(index)]));
  return [...found.noted]
    .filter(([name, { table }]) => table === layout.table.name && !kept.has(name))
    .map(([name]) => removalStep(schema, name));
}

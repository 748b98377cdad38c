/**
 * The stages of a commit: what a unit causes beside its own changes, as an ordered list in front of the store's own commit. A stage gets the
 * unit and the commit of the stages behind it. It may add or replace changes, wait, commit again, or act on the outcome; an outcome that it
 * returns numbers the refused change as the unit does that it got.
 *
 * The stages of the program in their order: the generation of endpoints, deliveries (webhooks/sending/sending.ts), messages of subscribers,
 * credentials that end (compose.ts), sealing (secrets/sealed-store.ts), and the lines of rows (lines.ts), which hand the unit to the engine.
 *
 * And the stage of a read: the rows of some tables as their readers see them, where they are kept otherwise (sealed, or with paths of another time).
 */
import { type Change, type Commit, type Page, type Row, type Store, type Unit, whenKnown } from './store.ts';

export type CommitUnit = (unit: Unit) => Promise<Commit>;

export type CommitStage = (unit: Unit, commit: CommitUnit) => Promise<Commit>;

/** The store with stages in front of its commit, the first one first. */
export function withStages<S extends Pick<Store, 'commit'>>(store: S, ...stages: readonly CommitStage[]): S {
  const commit = stages.reduceRight<CommitUnit>(
    (next, stage) => (unit) => stage(unit, next),
    (unit) => store.commit(unit),
  );
  return { ...store, commit };
}

/** Refused is the change at this place among those that a stage added: the stage decides what follows. */
export type AddedRefused = { readonly outcome: 'added-refused'; readonly added: number };

/** Commits a unit with the changes that a stage adds behind its own. */
export async function commitAdding(
  unit: Unit,
  added: readonly Change[],
  commit: CommitUnit,
): Promise<Commit | AddedRefused> {
  const own = unit.changes.length;
  const result = await commit({ ...unit, changes: [...unit.changes, ...added] });
  if (result.outcome === 'committed' || result.change < own) return result;
  const change = result.change - added.length;
  return change < own ? { outcome: 'added-refused', added: result.change - own } : { ...result, change };
}

export type ReadStage = {
  readonly tables: { has(table: string): boolean };
  /** @returns the text that was given, if it is read as it is kept */
  readonly document: (table: string, id: string, doc: string) => string;
  /** The same for a document of a page, of which the id is not known. */
  readonly paged: (table: string, doc: string) => string;
};

/** The store, read through the stage. */
export function withReadStage<S extends Store>(store: S, { tables, document, paged }: ReadStage): S {
  const seen = (table: string, row: Row): Row => {
    const doc = document(table, row.id, row.doc);
    return doc === row.doc ? row : { ...row, doc };
  };
  return {
    ...store,
    read(table, id) {
      const row = store.read(table, id);
      if (!tables.has(table)) return row;
      return whenKnown(row, (found) => (found === undefined ? undefined : seen(table, found)));
    },
    readMany: (table, ids, bytesMax) =>
      whenKnown(store.readMany(table, ids, bytesMax), (found) =>
        found === undefined || !tables.has(table)
          ? found
          : { ...found, rows: new Map([...found.rows].map(([id, row]) => [id, seen(table, row)])) },
      ),
    readNewest: (table, id) =>
      whenKnown(store.readNewest(table, id), (newest) =>
        newest.row === undefined || !tables.has(table) ? newest : { ...newest, row: seen(table, newest.row) },
      ),
    plan(query) {
      const plan = store.plan(query);
      const { table } = query;
      if (!tables.has(table)) return plan;
      return {
        bounded: plan.bounded,
        way: () => plan.way(),
        page: (position, party) =>
          whenKnown(plan.page(position, party), (page) => new SeenPage(page, (doc) => paged(table, doc))),
        rows: (position, limit) =>
          whenKnown(plan.rows(position, limit), (rows) => rows.map((row) => seen(table, row))),
      };
    },
  };
}

/** A page with other documents. Its keys are those of the rows as they are kept; a spread of the page would lose them, as they are getters. */
class SeenPage implements Page {
  readonly docs: readonly string[];
  readonly heads: Page['heads'];
  readonly more: boolean;
  readonly version: string;
  readonly #kept: Page;

  constructor(kept: Page, seen: (doc: string) => string) {
    this.docs = kept.docs.map(seen);
    this.heads = kept.heads;
    this.more = kept.more;
    this.version = kept.version;
    this.#kept = kept;
  }

  get first(): Page['first'] {
    return this.#kept.first;
  }

  get last(): Page['last'] {
    return this.#kept.last;
  }
}

/** The outcome of a commit, whose current row is read through the stage. */
export function seenCommit(commit: Commit, unit: Unit, { tables, document }: ReadStage): Commit {
  if (commit.outcome !== 'superseded' || commit.current === undefined) return commit;
  const { current } = commit;
  const table = unit.changes[commit.change]?.table;
  if (table === undefined || !tables.has(table)) return commit;
  return { ...commit, current: { ...current, doc: document(table, current.id, current.doc) } };
}

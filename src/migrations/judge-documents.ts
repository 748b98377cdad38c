/**
 * Judges at the start whether the documents of a store fit the configuration, by what the store remembers of them (migration-rows.ts):
 *
 *   fit         the declared shape is that of the store, or every document of the store's shape fits it too: served, and remembered
 *   pending     migrations are declared that were not made, and their collections have documents
 *   unsure      documents of the store's shape may not fit, and of those looked at some do not, or there are too many to look at all
 *   impossible  made migrations are missing or in another order, or a collection with documents is no longer declared
 */
import type { Collection } from '../model/collection.ts';
import { byId } from '../model/filter.ts';
import { pagesOf } from '../store/in-batches.ts';
import type { Change, Store } from '../store/store.ts';
import { fingerprintOfShape, misfits, respellingReason, shapeOf } from './declared-shape.ts';
import { InlineWork, type WorkLimits } from './document-work.ts';
import { type LookReport, lookAtDocuments } from './look-at-documents.ts';
import { type MigratedConfiguration, migratedCollections } from './migrated-collections.ts';
import {
  type Known,
  type MadeRow,
  type MigrationRows,
  readMigrationRows,
  rowChange,
  rowRemoval,
  type ShapeRow,
} from './migration-rows.ts';
import { type MigrationState, migrationState } from './migration-state.ts';

export type Finding =
  | { readonly kind: 'impossible'; readonly sentence: string }
  | {
      readonly kind: 'pending';
      readonly collection: string;
      readonly migrations: readonly string[];
      /** Another process may be making them. */
      readonly hasBegun: boolean;
      readonly documents: number;
      readonly isAll: boolean;
    }
  | {
      readonly kind: 'unsure';
      readonly collection: string;
      /** Why documents may not fit; empty if the store remembers no shape. */
      readonly reasons: readonly string[];
      readonly report: LookReport;
    };

export type Judgement = {
  readonly findings: readonly Finding[];
  /** What the store remembers from now on, if it is served. */
  readonly changes: readonly Change[];
  /** Collections that a later configuration extended: this process is of an earlier one. */
  readonly extended: readonly string[];
  readonly state: MigrationState;
  readonly rows: MigrationRows;
};

export type JudgeOptions = WorkLimits & {
  readonly store: Store;
  readonly configuration: MigratedConfiguration;
  readonly program: string;
  readonly clock: () => number;
  /** Documents of a collection that are looked at before the start. */
  readonly migrationLookDocumentsMax: number;
  readonly migrationBatchDocumentsMax: number;
  readonly migrationBatchBytesMax: number;
};

/** Fingerprints of earlier shapes that are kept. */
const earlierMax = 20;

export async function judgeDocuments(options: JudgeOptions): Promise<Judgement> {
  const { store, configuration } = options;
  const rows = await readMigrationRows(store);
  const state = migrationState(configuration, rows);
  const judging = new Judging(options, rows);
  for (const sentence of state.contradictions) judging.findings.push({ kind: 'impossible', sentence });
  await judging.removed(state);
  const pending = new Map<string, string[]>();
  for (const { collection, migrations } of state.runs) {
    const ids = migrations.map(({ id }) => id);
    pending.set(collection, [...(pending.get(collection) ?? []), ...ids]);
  }
  for (const collection of migratedCollections(configuration, rows.shapes).values()) {
    const ids = pending.get(collection.name);
    if (ids === undefined) await judging.shape(collection);
    else await judging.pending(collection, ids);
  }
  const { findings, changes, extended } = judging;
  return { findings, changes, extended, state, rows };
}

class Judging {
  readonly findings: Finding[] = [];
  readonly changes: Change[] = [];
  readonly extended: string[] = [];
  readonly #options: JudgeOptions;
  readonly #rows: MigrationRows;
  #order: number;

  constructor(options: JudgeOptions, rows: MigrationRows) {
    this.#options = options;
    this.#rows = rows;
    this.#order = 1 + (rows.made.at(-1)?.order ?? 0);
  }

  async removed({ removals }: MigrationState): Promise<void> {
    const { store, configuration } = this.#options;
    const declared = migratedCollections(configuration, this.#rows.shapes);
    const meant = new Set(removals.map(({ collection }) => collection));
    for (const { id, collection } of removals) this.#made(id, collection);
    for (const [name, known] of this.#rows.shapes) {
      if (declared.has(name)) continue;
      if (meant.has(name) || !(await store.holdsDocuments(name))) {
        this.changes.push(rowRemoval(known));
        continue;
      }
      const sentence = `the collection ${name} has documents in the store and is no longer declared: declare it again, or say that it is gone with the migration { id: '...', collection: '${name}', removed: true }, which keeps its documents in the store`;
      this.findings.push({ kind: 'impossible', sentence });
    }
  }

  /** Without documents there is nothing to migrate. */
  async pending(collection: Collection, ids: readonly string[]): Promise<void> {
    const { name } = collection;
    const run = this.#rows.runs.get(name);
    const { documents, isAll } = await this.#count(name);
    if (documents > 0 || run !== undefined) {
      const hasBegun = run !== undefined;
      this.findings.push({ kind: 'pending', collection: name, migrations: ids, hasBegun, documents, isAll });
      return;
    }
    for (const id of ids) this.#made(id, name);
    this.#remember(collection, this.#rows.shapes.get(name));
  }

  async shape(collection: Collection): Promise<void> {
    const { name } = collection;
    const known = this.#rows.shapes.get(name);
    const shape = shapeOf(collection);
    const fingerprint = fingerprintOfShape(shape);
    if (known?.row.fingerprint === fingerprint) return;
    const reasons = known === undefined ? [] : misfits(known.row.shape, shape);
    if (known !== undefined && reasons.length === 0) {
      const earlier = [...known.row.earlier, known.row.fingerprint];
      this.changes.push(shapeChange(this.#options, collection, known, { ...known.row, earlier }));
      return;
    }
    // Beside newer processes, one of the earlier configuration may start again.
    if (this.#options.store.shared && known?.row.earlier.includes(fingerprint) === true) {
      this.extended.push(name);
      return;
    }
    const report = await this.#look(collection);
    const isFit = report.unfit === 0 && (report.isAll || known === undefined);
    if (isFit) this.#remember(collection, known);
    else this.findings.push({ kind: 'unsure', collection: name, reasons, report });
  }

  #look(collection: Collection): Promise<LookReport> {
    const { migrationLookDocumentsMax: documentsMax } = this.#options;
    const work = new InlineWork(this.#options, undefined);
    return lookAtDocuments({ ...this.#options, work, documentsMax }, collection, []);
  }

  async #count(table: string): Promise<{ readonly documents: number; readonly isAll: boolean }> {
    const { store, migrationLookDocumentsMax, migrationBatchBytesMax: bytesMax } = this.#options;
    if (!(await store.holdsDocuments(table))) return { documents: 0, isAll: true };
    const limit = this.#options.migrationBatchDocumentsMax;
    const plan = store.plan({ table, filter: { op: 'always' }, sort: byId, limit, bytesMax });
    let documents = 0;
    for await (const { docs, more } of pagesOf(plan)) {
      documents += docs.length;
      if (more && documents >= migrationLookDocumentsMax) return { documents, isAll: false };
    }
    return { documents, isAll: true };
  }

  #made(migration: string, collection: string): void {
    const { clock, program } = this.#options;
    const row: MadeRow = {
      ...{ kind: 'made', migration, collection, order: this.#order, documents: 0, changed: 0 },
      ...{ madeAt: new Date(clock()).toISOString(), program },
    };
    this.#order += 1;
    this.changes.push(rowChange(row, undefined, clock()));
  }

  #remember(collection: Collection, known: Known<ShapeRow> | undefined): void {
    this.changes.push(shapeChange(this.#options, collection, known));
  }
}

/** Remembers the present shape of a collection. */
export function shapeChange(
  { clock, program }: Pick<JudgeOptions, 'clock' | 'program'>,
  collection: Collection,
  known: Known<ShapeRow> | undefined,
  {
    earlier = [],
    migrations = [],
    filled,
  }: Partial<Pick<ShapeRow, 'earlier' | 'migrations' | 'filled'>> = {},
): Change {
  const shape = shapeOf(collection);
  const row: ShapeRow = {
    ...{ kind: 'shape', collection: collection.name, fingerprint: fingerprintOfShape(shape), shape },
    ...{ earlier: earlier.slice(-earlierMax), migrations, ...(filled === true ? { filled } : {}) },
    ...{ since: new Date(clock()).toISOString(), program },
  };
  return rowChange(row, known, clock());
}

/** One sentence for each finding, with what to do. */
export function sentencesOf(findings: readonly Finding[]): readonly string[] {
  return findings.map((finding) => {
    if (finding.kind === 'impossible') return finding.sentence;
    return finding.kind === 'pending' ? pendingSentence(finding) : unsureSentence(finding);
  });
}

/** True if no run helps, because documents do not fit and no migration is declared for them. */
export function isHopeless(finding: Finding): boolean {
  if (finding.kind === 'unsure') return finding.report.unfit > finding.report.filled;
  return finding.kind === 'impossible';
}

type Of<K extends Finding['kind']> = Extract<Finding, { readonly kind: K }>;

function pendingSentence({ collection, migrations, hasBegun, documents, isAll }: Of<'pending'>): string {
  const which = `${migrations.length === 1 ? 'the migration' : 'the migrations'} ${migrations.join(', ')}`;
  const state = hasBegun ? 'has begun and is not done' : 'is pending';
  return `${collection}: ${which} ${state}, for ${countOf(documents, isAll)}; run "comity migrate", or start with --migrate`;
}

function unsureSentence({ collection, reasons, report }: Of<'unsure'>): string {
  const { documents, isAll, unfit, filled, faults } = report;
  const why = reasons.length === 0 ? '' : ` (${reasons.join('; ')})`;
  const looked = isAll ? `of ${countOf(documents, true)}` : `of the first ${countOf(documents, true)}`;
  const left = unfit - filled;
  const needing =
    left === 0 || left === unfit ? '' : `, ${left} of which ${left === 1 ? 'needs' : 'need'} a migration`;
  const [fault] = faults;
  const example =
    fault === undefined
      ? ''
      : `, such as ${collection}/${fault.examples[0]}: ${[fault.pointer, fault.message].filter((part) => part !== '').join(' ')}`;
  const remedy =
    unfit === 0
      ? 'run "comity migrate", which looks at all of them'
      : filled === unfit
        ? `run "comity migrate", which ${wordsOfFilling(report)}, or start with --migrate`
        : 'run "comity migrate --dry-run" to see them, and declare a migration';
  return `${collection}: documents may not fit its declaration, which has changed${why}; ${looked}, ${unfit} do not fit${needing}${example}; ${remedy}`;
}

/** Describes the changes that a run without migrations makes to the documents of the report. */
export function wordsOfFilling({ filled, respelt }: Pick<LookReport, 'filled' | 'respelt'>): string {
  const parts = [
    ...(filled > respelt ? ['fills in their defaults'] : []),
    ...(respelt > 0 ? ['keeps their date-times in UTC'] : []),
  ];
  return parts.join(' and ');
}

/** True if nothing but the spelling of date-times may keep documents from fitting: an earlier version kept them as they were sent. */
export function isOfRespelling(finding: Finding): boolean {
  if (finding.kind !== 'unsure') return false;
  const { reasons, report } = finding;
  const isOnly = reasons.length > 0 && reasons.every((reason) => reason === respellingReason);
  return isOnly && report.unfit === report.respelt;
}

export function countOf(documents: number, isAll: boolean): string {
  const count = documents.toLocaleString('en');
  return `${count}${isAll ? '' : ' or more'} ${documents === 1 && isAll ? 'document' : 'documents'}`;
}

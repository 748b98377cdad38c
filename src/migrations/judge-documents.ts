/**
 * Judges at the start whether the documents of a store fit the configuration, by what the store remembers of them (migration-state.ts):
 *
 *   fit         the declared shape is that of the store, or every document of the store's shape fits it too: served, and remembered
 *   pending     migrations are declared that were not made, and their collections have documents
 *   unsure      documents of the store's shape may not fit, and of those looked at some do not, or there are too many to look at all
 *   impossible  made migrations are missing or in another order, or a collection with documents is no longer declared
 */
import type { FieldError } from '../http/problem.ts';
import type { Collection } from '../model/collection.ts';
import { byId } from '../model/filter.ts';
import { compareText } from '../model/matches.ts';
import { pagesOf } from '../store/in-batches.ts';
import { documentKey } from '../store/page-of-rows.ts';
import type { Change, Store } from '../store/store.ts';
import { fingerprintOfShape, misfits, respellingReason, shapeOf } from './declared-shape.ts';
import {
  type Candidate,
  type DocumentWork,
  InlineWork,
  type Looked,
  respellingMessage,
} from './document-work.ts';
import {
  type Known,
  type MadeRow,
  type MigrationRows,
  type MigrationServices,
  type MigrationState,
  migratedCollections,
  migrationState,
  readMigrationRows,
  rowChange,
  rowRemoval,
  type ShapeRow,
} from './migration-state.ts';

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

/** Fingerprints of earlier shapes that are kept. */
const earlierMax = 20;

/** @param documentsMax documents of a collection that are looked at; by default as many as before a start */
export async function judgeDocuments(
  services: MigrationServices,
  documentsMax = services.settings.migrationLookDocumentsMax,
): Promise<Judgement> {
  const { store, configuration } = services;
  const rows = await readMigrationRows(store);
  const state = migrationState(configuration, rows);
  const judging = new Judging(services, rows, documentsMax);
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
  readonly #services: MigrationServices;
  readonly #rows: MigrationRows;
  readonly #documentsMax: number;
  #order: number;

  constructor(services: MigrationServices, rows: MigrationRows, documentsMax: number) {
    this.#services = services;
    this.#rows = rows;
    this.#documentsMax = documentsMax;
    this.#order = 1 + (rows.made.at(-1)?.order ?? 0);
  }

  async removed({ removals }: MigrationState): Promise<void> {
    const { store, configuration } = this.#services;
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
      this.changes.push(shapeChange(this.#services, collection, known, { ...known.row, earlier }));
      return;
    }
    // Beside newer processes, one of the earlier configuration may start again.
    if (this.#services.store.shared && known?.row.earlier.includes(fingerprint) === true) {
      this.extended.push(name);
      return;
    }
    const report = await this.#look(collection);
    const isFit = report.unfit === 0 && (report.isAll || known === undefined);
    if (isFit) this.#remember(collection, known);
    else this.findings.push({ kind: 'unsure', collection: name, reasons, report });
  }

  #look(collection: Collection): Promise<LookReport> {
    const { configuration, settings } = this.#services;
    const work = new InlineWork(configuration, settings, undefined);
    return lookAtDocuments(this.#services, work, { collection, documentsMax: this.#documentsMax });
  }

  async #count(table: string): Promise<{ readonly documents: number; readonly isAll: boolean }> {
    const { store, settings } = this.#services;
    if (!(await store.holdsDocuments(table))) return { documents: 0, isAll: true };
    const { migrationBatchDocumentsMax: limit, migrationBatchBytesMax: bytesMax } = settings;
    const plan = store.plan({ table, filter: { op: 'always' }, sort: byId, limit, bytesMax });
    let documents = 0;
    for await (const { docs, more } of pagesOf(plan)) {
      documents += docs.length;
      if (more && documents >= this.#documentsMax) return { documents, isAll: false };
    }
    return { documents, isAll: true };
  }

  #made(migration: string, collection: string): void {
    const { clock, program } = this.#services;
    const row: MadeRow = {
      ...{ kind: 'made', migration, collection, order: this.#order, documents: 0, changed: 0 },
      ...{ madeAt: new Date(clock()).toISOString(), program },
    };
    this.#order += 1;
    this.changes.push(rowChange(row, undefined, clock()));
  }

  #remember(collection: Collection, known: Known<ShapeRow> | undefined): void {
    this.changes.push(shapeChange(this.#services, collection, known));
  }
}

/** Remembers the present shape of a collection. */
export function shapeChange(
  { clock, program }: Pick<MigrationServices, 'clock' | 'program'>,
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
function wordsOfFilling({ filled, respelt }: Pick<LookReport, 'filled' | 'respelt'>): string {
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

/** A pointer and a message, with the documents that have it. */
type FaultKind = {
  readonly pointer: string;
  readonly message: string;
  readonly count: number;
  /** Ids. */
  readonly examples: readonly string[];
};

export type LookReport = {
  readonly collection: string;
  /** Documents looked at, and whether these are all. */
  readonly documents: number;
  readonly isAll: boolean;
  /** Documents that do not fit, by their first fault; those that need a migration come first. */
  readonly unfit: number;
  readonly faults: readonly FaultKind[];
  /** Those of them that fit once their defaults are filled in and their date-times are kept in UTC. */
  readonly filled: number;
  /** Those of them that lack only the latter. */
  readonly respelt: number;
  /** Documents that each pending migration would change. */
  readonly changedBy: ReadonlyMap<string, number>;
  /** Documents at which the migrations would stop. */
  readonly failing: number;
  readonly failures: readonly FaultKind[];
};

export type Look = {
  readonly collection: Collection;
  /** Ids of pending migrations. */
  readonly migrations?: readonly string[];
  /** Ends the look; default none. */
  readonly documentsMax?: number;
  /** The last id that an interrupted run has migrated. */
  readonly doneUntil?: string | null;
  readonly onProgress?: (documents: number) => void;
};

export async function lookAtDocuments(
  { store, settings, clock }: Pick<MigrationServices, 'store' | 'settings' | 'clock'>,
  work: DocumentWork,
  {
    collection,
    migrations = [],
    documentsMax = Number.POSITIVE_INFINITY,
    doneUntil = null,
    onProgress,
  }: Look,
): Promise<LookReport> {
  const { migrationBatchDocumentsMax, migrationBatchBytesMax } = settings;
  const { name } = collection;
  const report = new Report(name, migrations);
  // Of a new collection the store may not have the table yet, to which a plan looks.
  if (!(await store.holdsDocuments(name))) return report.finish(true);
  const plan = store.plan({
    ...{ table: name, filter: { op: 'always' }, sort: byId },
    ...{ limit: migrationBatchDocumentsMax, bytesMax: migrationBatchBytesMax },
  });
  for await (const { docs, more } of pagesOf(plan)) {
    const candidates = docs.map((doc) => candidateOf(doc, doneUntil));
    const now = clock();
    const looked =
      candidates.length === 0
        ? []
        : await work.look({ collection: name, migrations, isLast: true, candidates, now });
    const missing = await missingTargets(store, collection, candidates, looked);
    for (const [index, each] of looked.entries()) {
      report.add(candidates[index]?.id ?? '', each, missing(each));
    }
    onProgress?.(report.documents);
    if (more && report.documents >= documentsMax) return report.finish(false);
  }
  return report.finish(true);
}

/** @returns the fault of a document that refers to one which does not exist */
async function missingTargets(
  store: Pick<Store, 'read' | 'holdsDocuments'>,
  { name, references }: Collection,
  candidates: readonly Candidate[],
  looked: readonly Looked[],
): Promise<(looked: Looked) => FieldError | undefined> {
  const tables = new Map(references.map(({ field, collection }) => [field, collection]));
  const targets = new Map<string, readonly [table: string, id: string]>();
  const key = (field: string, id: string): string => `${tables.get(field)}/${id}`;
  for (const { references: held } of looked)
    for (const { field, id } of held) targets.set(key(field, id), [tables.get(field) ?? '', id]);
  // A document may refer to itself.
  for (const { id } of candidates) targets.delete(`${name}/${id}`);
  const missing = new Set<string>();
  const filled = new Map<string, boolean>();
  for (const table of new Set([...targets.values()].map(([table]) => table)))
    filled.set(table, await store.holdsDocuments(table));
  await Promise.all(
    targets.entries().map(async ([at, [table, id]]) => {
      const row = filled.get(table) === true ? await store.read(table, id) : undefined;
      if (row === undefined || row.deletedAt !== null) missing.add(at);
    }),
  );
  return ({ references: held }) => {
    const dangling = held.find(({ field, id }) => missing.has(key(field, id)));
    if (dangling === undefined) return undefined;
    const message = `names a document that does not exist in ${tables.get(dangling.field)}`;
    return { pointer: `/${dangling.field}`, message };
  };
}

function candidateOf(doc: string, doneUntil: string | null): Candidate {
  const id = String(documentKey(byId, doc)[0]);
  const isOlder = doneUntil === null || compareText(id, doneUntil) > 0;
  return { id, doc, owner: null, createdAt: 0, updatedAt: 0, isOlder };
}

const kindsMax = 20;
const examplesMax = 5;
const messageCharactersMax = 300;

type Kind = { pointer: string; message: string; count: number; examples: string[] };

class Report {
  documents = 0;
  readonly #name: string;
  readonly #changedBy: Map<string, number>;
  readonly #faults = new Map<string, Kind>();
  /** Documents that need no migration. */
  readonly #fillable = new Map<string, Kind>();
  readonly #failures = new Map<string, Kind>();
  #unfit = 0;
  #filled = 0;
  #respelt = 0;
  #failing = 0;

  constructor(name: string, migrations: readonly string[]) {
    this.#name = name;
    this.#changedBy = new Map(migrations.map((id) => [id, 0]));
  }

  add(id: string, looked: Looked, dangling: { pointer: string; message: string } | undefined): void {
    this.documents += 1;
    for (const migration of looked.changedBy) {
      this.#changedBy.set(migration, (this.#changedBy.get(migration) ?? 0) + 1);
    }
    const isMigrated = this.#changedBy.size > 0;
    const fault = looked.fault ?? (isMigrated ? undefined : dangling);
    if (fault !== undefined) {
      this.#unfit += 1;
      const isFilled = looked.isFilled && dangling === undefined;
      if (isFilled) {
        this.#filled += 1;
        if (fault.message === respellingMessage) this.#respelt += 1;
      }
      count(isFilled ? this.#fillable : this.#faults, id, fault);
    }
    const failure = looked.failure ?? (isMigrated ? dangling : undefined);
    if (failure !== undefined) {
      this.#failing += 1;
      count(this.#failures, id, failure);
    }
  }

  finish(isAll: boolean): LookReport {
    return {
      ...{ collection: this.#name, documents: this.documents, isAll },
      ...{
        unfit: this.#unfit,
        faults: [...kindsOf(this.#faults), ...kindsOf(this.#fillable)],
        filled: this.#filled,
        respelt: this.#respelt,
        changedBy: this.#changedBy,
      },
      ...{ failing: this.#failing, failures: kindsOf(this.#failures) },
    };
  }
}

/** Kinds beyond the bound are counted in one without a pointer. */
function count(kinds: Map<string, Kind>, id: string, fault: { pointer: string; message: string }): void {
  const message = fault.message.slice(0, messageCharactersMax);
  const key = `${fault.pointer} ${message}`;
  const isOther = !kinds.has(key) && kinds.size >= kindsMax;
  const kind: Kind = (isOther ? kinds.get('') : kinds.get(key)) ?? {
    pointer: isOther ? '' : fault.pointer,
    message: isOther ? 'other faults' : message,
    ...{ count: 0, examples: [] },
  };
  kinds.set(isOther ? '' : key, kind);
  kind.count += 1;
  if (kind.examples.length < examplesMax) kind.examples.push(id);
}

function kindsOf(kinds: ReadonlyMap<string, Kind>): readonly FaultKind[] {
  return [...kinds.values()].sort((one, other) => other.count - one.count);
}

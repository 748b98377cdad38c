/**
 * Looks at the documents of a collection: which do not fit the present declaration, and what pending migrations would change. Changes
 * nothing. The report is bounded however many documents misfit: kinds of faults and examples of each.
 */
import type { FieldError } from '../http/problem.ts';
import type { Collection } from '../model/collection.ts';
import { byId } from '../model/filter.ts';
import { compareText } from '../model/matches.ts';
import { pagesOf } from '../store/in-batches.ts';
import { documentKey } from '../store/page-of-rows.ts';
import type { Store } from '../store/store.ts';
import type { DocumentWork } from './document-work.ts';
import { type Candidate, type Looked, respellingMessage } from './migrate-document.ts';

/** A pointer and a message, with the documents that have it. */
export type FaultKind = {
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

export type LookOptions = {
  readonly store: Pick<Store, 'holdsDocuments' | 'plan' | 'read'>;
  readonly work: DocumentWork;
  readonly migrationBatchDocumentsMax: number;
  readonly migrationBatchBytesMax: number;
  readonly clock: () => number;
  /** Ends the look; default none. */
  readonly documentsMax?: number;
  /** The last id that an interrupted run has migrated. */
  readonly doneUntil?: string | null;
  readonly onProgress?: ((documents: number) => void) | undefined;
};

/** @param migrations ids of the pending ones */
export async function lookAtDocuments(
  options: LookOptions,
  collection: Collection,
  migrations: readonly string[],
): Promise<LookReport> {
  const { store, work, migrationBatchDocumentsMax, migrationBatchBytesMax, clock } = options;
  const { documentsMax = Number.POSITIVE_INFINITY, doneUntil = null } = options;
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
    options.onProgress?.(report.documents);
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

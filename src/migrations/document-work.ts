/**
 * Documents through migrations, a batch at a time: on a thread, which is ended when `up` does not return, or in this thread for a
 * declaration that no module exports. Both give the same results.
 */
import { Worker } from 'node:worker_threads';
import { kindOf } from '../config/inspection.ts';
import { placeFailure } from '../config/load-configuration.ts';
import type { DeclaredMigration, OldDocument } from '../config/migrations.ts';
import type { Settings } from '../config/settings.ts';
import type { FieldError } from '../http/problem.ts';
import { compileValidator, type Validator } from '../kernel/content/validator.ts';
import type { Collection } from '../model/collection.ts';
import { equalJson, isMembers, type Members } from '../model/json-value.ts';
import { ownEmitter } from '../observe/own-emitter.ts';
import { callAs } from '../observe/running-function.ts';
import { nextRow } from '../resources/collection/row.ts';
import { storedFields } from '../resources/document/propose.ts';
import { type HeldReference, referencesOf } from '../resources/document/representation.ts';
import type { NextRow, Row } from '../store/store.ts';
import { workerFile } from '../store/worker-file.ts';
import { type MigratedConfiguration, type MigrationServices, migratedCollection } from './migration-state.ts';

type WorkLimits = {
  readonly validationErrorsMax: number;
  readonly documentCharactersMax: number;
};

export type Batch = {
  readonly collection: string;
  /** Ids of migrations in the configuration. */
  readonly migrations: readonly string[];
  readonly isLast: boolean;
  readonly candidates: readonly Candidate[];
  /** Milliseconds since the epoch. */
  readonly now: number;
};

/** Results are in the order of the candidates. */
export type DocumentWork = {
  /** @throws MigrationStopped where `up` does not return */
  migrate(batch: Batch): Promise<readonly Migrated[]>;
  look(batch: Batch): Promise<readonly Looked[]>;
  close(): Promise<void>;
};

/** The migration cannot go on. The message says why, and at which document. */
export class MigrationStopped extends Error {
  override readonly name = 'MigrationStopped';
  readonly code = 'migration_stopped';
}

/** The documents in the store do not fit the configuration. `lines` has a sentence for each collection. */
export class DocumentsUnfit extends Error {
  override readonly name = 'DocumentsUnfit';
  readonly code = 'documents_unfit';
  readonly lines: readonly string[];

  constructor(lines: readonly string[]) {
    super(lines.join('\n'));
    this.lines = lines;
  }
}

/** @param isBeside requests are served meanwhile by the same process: the thread gives way to them */
export function createDocumentWork(
  { configuration, settings, module }: Pick<MigrationServices, 'configuration' | 'settings' | 'module'>,
  isBeside: boolean,
): DocumentWork {
  if (module?.startsWith('file:') !== true) return new InlineWork(configuration, settings, undefined);
  return new ThreadedWork(settings, module, isBeside);
}

/** The words of an error that `up` threw, with its file and line. */
function describe(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : `threw ${String(error)}`;
}

/** Batches in the thread that calls. */
export class InlineWork implements DocumentWork {
  readonly #configuration: MigratedConfiguration;
  readonly #limits: WorkLimits;
  readonly #path: string | undefined;
  readonly #validators = new Map<string, Validator>();

  /** @param path of the configuration, for the places of errors */
  constructor(configuration: MigratedConfiguration, limits: WorkLimits, path: string | undefined) {
    this.#configuration = configuration;
    this.#limits = limits;
    this.#path = path;
  }

  migrate(batch: Batch, onDocument?: (index: number) => void): Promise<readonly Migrated[]> {
    return this.#run(batch, onDocument, migrateDocument);
  }

  look(batch: Batch, onDocument?: (index: number) => void): Promise<readonly Looked[]> {
    return this.#run(batch, onDocument, lookAtDocument);
  }

  async close(): Promise<void> {
    // Nothing is held.
  }

  async #run<T extends Migrated | Looked>(
    batch: Batch,
    onDocument: ((index: number) => void) | undefined,
    work: (passage: Passage, candidate: Candidate, now: number) => T,
  ): Promise<readonly T[]> {
    let thrown: unknown;
    const passage = this.#passageOf(batch, (error) => {
      thrown = error;
      return describe(error);
    });
    const results: T[] = [];
    for (const [index, candidate] of batch.candidates.entries()) {
      onDocument?.(index);
      thrown = undefined;
      const result = work(passage, candidate, batch.now);
      results.push(thrown === undefined ? result : await this.#placed(result, thrown));
    }
    return results;
  }

  #passageOf({ collection: name, migrations, isLast }: Batch, words: Passage['describe']): Passage {
    const configuration = this.#configuration;
    const { validationErrorsMax, documentCharactersMax } = this.#limits;
    const collection = migratedCollection(configuration, name);
    if (collection === undefined) throw new Error(`no collection is named ${name}`);
    const validator = this.#validators.get(name) ?? compileValidator(collection, validationErrorsMax);
    this.#validators.set(name, validator);
    const chain = configuration.migrations.filter(({ id }) => migrations.includes(id));
    return { collection, validator, migrations: chain, isLast, documentCharactersMax, describe: words };
  }

  /** With the place in the file of the application, which takes too long for every document. */
  async #placed<T extends Migrated | Looked>(result: T, error: unknown): Promise<T> {
    if (this.#path === undefined || !('failure' in result) || result.failure === undefined) return result;
    const message = await placeFailure(this.#path, error);
    return { ...result, failure: { ...result.failure, message } };
  }
}

export type ThreadData = WorkLimits & {
  readonly module: string;
  /** Requests are served meanwhile by the same process. */
  readonly isBeside: boolean;
  /** The index of the document under way. */
  readonly progress: Int32Array<SharedArrayBuffer>;
};
export type ThreadRequest = { readonly kind: 'migrate' | 'look'; readonly batch: Batch };
export type ThreadReply =
  | { readonly kind: 'done'; readonly results: readonly Migrated[] | readonly Looked[] }
  | { readonly kind: 'failed'; readonly message: string };

type Waiting = {
  readonly batch: Batch;
  readonly resolve: (results: readonly Migrated[] | readonly Looked[]) => void;
  readonly reject: (error: unknown) => void;
};

/** For the import of the configuration. */
const loadMs = 60_000;
/** Between two looks at the document under way. */
const watchMs = 250;

/** One thread, which starts with its first batch and takes one at a time. */
class ThreadedWork implements DocumentWork {
  readonly #settings: Settings;
  readonly #module: string;
  readonly #isBeside: boolean;
  #worker: Worker | undefined;
  #progress = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  #underWay: Waiting | undefined;
  #watch: NodeJS.Timeout | undefined;

  constructor(settings: Settings, module: string, isBeside: boolean) {
    this.#settings = settings;
    this.#module = module;
    this.#isBeside = isBeside;
  }

  migrate(batch: Batch): Promise<readonly Migrated[]> {
    return this.#carryOut<Migrated>('migrate', batch);
  }

  look(batch: Batch): Promise<readonly Looked[]> {
    return this.#carryOut<Looked>('look', batch);
  }

  async close(): Promise<void> {
    await this.#worker?.terminate();
  }

  #carryOut<T extends Migrated | Looked>(kind: ThreadRequest['kind'], batch: Batch): Promise<readonly T[]> {
    if (this.#underWay !== undefined) throw new Error('a batch is under way');
    const worker = this.#worker ?? this.#start();
    return new Promise((resolve, reject) => {
      this.#underWay = { batch, resolve: (results) => resolve(results as readonly T[]), reject };
      // Until the thread begins, so that the import of the configuration is bounded too.
      Atomics.store(this.#progress, 0, -1);
      this.#watchProgress(-1, performance.now());
      worker.ref();
      worker.postMessage({ kind, batch } satisfies ThreadRequest);
    });
  }

  #start(): Worker {
    const { validationErrorsMax, documentCharactersMax, migrationHeapBytesMax } = this.#settings;
    const data: ThreadData = {
      ...{ validationErrorsMax, documentCharactersMax },
      ...{ module: this.#module, progress: this.#progress, isBeside: this.#isBeside },
    };
    let cause: NodeJS.ErrnoException | undefined;
    const worker = ownEmitter(
      new Worker(workerFile('./migration-thread', import.meta.url), {
        workerData: data,
        resourceLimits: { maxOldGenerationSizeMb: Math.ceil(migrationHeapBytesMax / 1_048_576) },
      }),
      (error: NodeJS.ErrnoException) => {
        cause = error;
      },
    );
    worker.on('message', (reply: ThreadReply) => {
      const waiting = this.#take();
      worker.unref();
      if (reply.kind === 'done') waiting?.resolve(reply.results);
      else waiting?.reject(new MigrationStopped(reply.message));
    });
    worker.on('exit', () => {
      if (this.#worker === worker) this.#worker = undefined;
      const memory = 'exceeded the memory of migrations (COMITY_MIGRATION_HEAP_BYTES_MAX)';
      const why =
        cause?.code === 'ERR_WORKER_OUT_OF_MEMORY' ? memory : `ended its thread: ${cause?.message ?? 'exit'}`;
      const at = this.#documentUnderWay();
      this.#take()?.reject(new MigrationStopped(`${at}: up ${why}`, { cause }));
    });
    this.#worker = worker;
    return worker;
  }

  /** @param since when the document was first seen under way */
  #watchProgress(last: number, since: number): void {
    const { migrationTimeoutMs } = this.#settings;
    this.#watch = setTimeout(
      () => {
        const now = Atomics.load(this.#progress, 0);
        const isLoading = now === -1;
        const timeoutMs = isLoading ? Math.max(migrationTimeoutMs, loadMs) : migrationTimeoutMs;
        const isOver = now === last && performance.now() - since >= timeoutMs;
        if (!isOver) this.#watchProgress(now, now === last ? since : performance.now());
        else this.#giveUp(isLoading, timeoutMs);
      },
      Math.min(watchMs, migrationTimeoutMs),
    );
  }

  #giveUp(isLoading: boolean, timeoutMs: number): void {
    const at = this.#documentUnderWay();
    const message = isLoading
      ? `${at}: the configuration did not load within ${timeoutMs} ms`
      : `${at}: up did not return within ${timeoutMs} ms (COMITY_MIGRATION_TIMEOUT_MS)`;
    this.#take()?.reject(new MigrationStopped(message));
    // V8 does not interrupt every loop: `while (name.startsWith('A'));` then runs until the process ends, which does not wait for it.
    this.#worker?.unref();
    void this.#worker?.terminate();
    this.#worker = undefined;
    this.#progress = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  }

  #documentUnderWay(): string {
    const batch = this.#underWay?.batch;
    const candidate = batch?.candidates[Math.max(0, Atomics.load(this.#progress, 0))];
    return `${batch?.collection}/${candidate?.id}`;
  }

  #take(): Waiting | undefined {
    const waiting = this.#underWay;
    this.#underWay = undefined;
    clearTimeout(this.#watch);
    return waiting;
  }
}

/** A stored document, and what the run knows of it. */
export type Candidate = Pick<Row, 'id' | 'doc' | 'owner' | 'createdAt' | 'updatedAt'> & {
  /** Last written before the run began: it is migrated even if it fits. */
  readonly isOlder: boolean;
};

/** Why a document cannot be migrated. */
type DocumentFailure = {
  /** The migration whose function failed; undefined: its result does not fit. */
  readonly migration: string | undefined;
  /** JSON Pointer of the member; empty for the document. */
  readonly pointer: string;
  readonly message: string;
};

export type Migrated =
  | { readonly kind: 'stays' }
  | { readonly kind: 'changed'; readonly next: NextRow; readonly before: string }
  | { readonly kind: 'failed'; readonly failure: DocumentFailure };

/** The steps that the documents of a collection go through. */
export type Passage = {
  readonly collection: Collection;
  readonly validator: Validator;
  readonly migrations: readonly DeclaredMigration[];
  /** The result must fit the schema. False: other migrations of the collection follow. */
  readonly isLast: boolean;
  readonly documentCharactersMax: number;
  /** Words for what `up` throws, with its place. */
  readonly describe: (error: unknown) => string;
};

const madeMembers = ['id', 'createdAt', 'updatedAt', 'deletedAt'] as const;
const stays: Migrated = { kind: 'stays' };

/** @param now milliseconds since the epoch */
export function migrateDocument(passage: Passage, candidate: Candidate, now: number): Migrated {
  const { collection, validator, isLast, documentCharactersMax } = passage;
  const { doc, owner, createdAt, isOlder } = candidate;
  const before = JSON.parse(doc) as Members;
  const isPlain = passage.migrations.length === 0;
  const [misfit] = isPlain || !isOlder ? faultsOf(passage, before) : [];
  if (!isOlder && misfit === undefined) return stays;
  const passed = passThrough(passage, doc, before);
  if ('failure' in passed) return { kind: 'failed', failure: passed.failure };
  // A document that fits but for its date-times gets no defaults of optional members.
  const isRespelt = isPlain && misfit?.message === respellingMessage;
  const filling = isRespelt ? { fillDefaults: validator.instants?.keep } : validator;
  const fields = storedFields(collection, filling, passed.document);
  const parts = { id: candidate.id, fields, owner, createdAt, deletedAt: null };
  const [fault] = isLast ? faultsOf(passage, withoutMembers(fields, collection.computed)) : [];
  if (fault !== undefined) return failed(undefined, fault.pointer, fault.message);
  // Computed fields are those of the declaration, which only the last migration must satisfy.
  const made = { collection: isLast ? collection : withoutComputed(collection), validator };
  const changedBy = passed.changedBy.size > 0 ? passed.changedBy : idsOfLast(passage);
  const isTouching = passage.migrations.some(({ id, touch }) => touch && changedBy.has(id));
  let next: NextRow;
  try {
    next = nextRow(made, { ...parts, updatedAt: candidate.updatedAt });
    if (isTouching && next.doc !== doc)
      next = nextRow(made, { ...parts, updatedAt: Math.max(now, candidate.updatedAt) });
  } catch (error) {
    return failed(undefined, '', passage.describe(error));
  }
  if (next.doc.length > documentCharactersMax) {
    return failed(undefined, '', `would be longer than ${documentCharactersMax} characters`);
  }
  return next.doc === doc ? stays : { kind: 'changed', next, before: doc };
}

/** Defaults and computed fields, which are filled in at the end, count as a change by the last migration. */
function idsOfLast({ migrations }: Passage): ReadonlySet<string> {
  return new Set(migrations.slice(-1).map(({ id }) => id));
}

/** A document as it is stored and as the migrations would change it, for `comity migrate --dry-run`. */
export type Looked = {
  /** The first fault by the present schema; undefined: it fits. */
  readonly fault: FieldError | undefined;
  /** Ids of the migrations that would change it. */
  readonly changedBy: readonly string[];
  /** It fits once its defaults are filled in and its date-times are kept in UTC, which needs no migration. */
  readonly isFilled: boolean;
  /** Why the migrations would stop at it. */
  readonly failure: DocumentFailure | undefined;
  /** Its references, if it fits or would fit. */
  readonly references: readonly HeldReference[];
};

export function lookAtDocument(passage: Passage, candidate: Candidate, now: number): Looked {
  const { collection, migrations } = passage;
  const document = JSON.parse(candidate.doc) as Members;
  const [fault] = faultsOf(passage, document);
  const looked = { fault, changedBy: [], isFilled: false, failure: undefined };
  if (fault === undefined && (migrations.length === 0 || !candidate.isOlder))
    return { ...looked, references: referencesOf(collection, document) };
  const migrated = migrateDocument(passage, { ...candidate, isOlder: true }, now);
  const isChanged = migrated.kind === 'changed';
  const references = isChanged ? migrated.next.references : referencesOf(collection, document);
  if (migrations.length === 0) return { ...looked, isFilled: isChanged, references };
  const passed = passThrough(passage, candidate.doc, document);
  const own = 'failure' in passed ? [] : [...passed.changedBy];
  return {
    ...looked,
    changedBy: own.length === 0 && isChanged ? [...idsOfLast(passage)] : own,
    failure: migrated.kind === 'failed' ? migrated.failure : undefined,
    references,
  };
}

type Passed =
  | { readonly document: Members; readonly changedBy: ReadonlySet<string> }
  | { readonly failure: DocumentFailure };

function passThrough(passage: Passage, doc: string, made: Members): Passed {
  // `up` may change what it is given.
  let document = JSON.parse(doc) as Members;
  const changedBy = new Set<string>();
  for (const { id, up, collection } of passage.migrations) {
    if (up === undefined) continue;
    const text = JSON.stringify(document);
    let returned: unknown;
    try {
      returned = callAs({ named: `the migration ${id} of ${collection}` }, up, document as OldDocument);
    } catch (error) {
      return { failure: { migration: id, pointer: '', message: passage.describe(error) } };
    }
    const taken = takenAsJson(returned);
    if (typeof taken === 'string') return { failure: { migration: id, pointer: '', message: taken } };
    document = taken;
    for (const name of madeMembers) {
      if (Object.hasOwn(document, name) && !equalJson(document[name], made[name])) {
        const message = 'must stay as it is: the store gives it';
        return { failure: { migration: id, pointer: `/${name}`, message } };
      }
    }
    if (JSON.stringify(document) !== text) changedBy.add(id);
  }
  return { document, changedBy };
}

/** @returns what is wrong with what is no document */
function takenAsJson(returned: unknown): Members | string {
  if (returned instanceof Promise) {
    returned.catch(() => undefined);
    return 'up returned a promise: it must be synchronous';
  }
  const wrong = `up returned ${kindOf(returned)}: return the document`;
  if (!isMembers(returned)) return wrong;
  try {
    const taken: unknown = JSON.parse(JSON.stringify(returned) ?? 'null');
    return isMembers(taken) ? taken : wrong;
  } catch (error) {
    const [line = ''] = (error instanceof Error ? error.message : String(error)).split('\n', 1);
    return `up returned what is no JSON: ${line}`;
  }
}

function faultsOf({ validator }: Passage, document: Members): readonly FieldError[] {
  const fields: Record<string, unknown> = { ...document };
  for (const name of madeMembers) delete fields[name];
  const { missing, invalid } = validator.check(fields);
  if (missing.length + invalid.length > 0) return [...missing, ...invalid];
  const pointer = validator.instants?.findRespelt(fields);
  return pointer === undefined ? [] : [{ pointer, message: respellingMessage }];
}

/** The fault of a document that fits but for the spelling of its instants. */
export const respellingMessage = 'is a date-time that is not kept in UTC yet';

function withoutMembers(document: Members, names: ReadonlyMap<string, unknown> = new Map()): Members {
  if (names.size === 0) return document;
  return Object.fromEntries(Object.entries(document).filter(([name]) => !names.has(name)));
}

function withoutComputed(collection: Collection): Collection {
  const { computed: _, ...rest } = collection;
  return rest;
}

function failed(migration: string | undefined, pointer: string, message: string): Migrated {
  return { kind: 'failed', failure: { migration, pointer, message } };
}

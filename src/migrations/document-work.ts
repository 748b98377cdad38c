/**
 * Documents through migrations, a batch at a time: on a thread, which is ended when `up` does not return, or in this thread for a
 * declaration that no module exports. Both give the same results.
 */
import { Worker } from 'node:worker_threads';
import { placeFailure } from '../config/import-failure.ts';
import { compileValidator, type Validator } from '../kernel/content/validator.ts';
import { ownEmitter } from '../observe/own-emitter.ts';
import { workerFile } from '../store/worker-file.ts';
import {
  type Candidate,
  type Looked,
  lookAtDocument,
  type Migrated,
  migrateDocument,
  type Passage,
} from './migrate-document.ts';
import { type MigratedConfiguration, migratedCollection } from './migrated-collections.ts';

export type WorkLimits = {
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

export type WorkOptions = WorkLimits & {
  readonly configuration: MigratedConfiguration;
  /** URL of the module whose default export is the configuration; undefined: the batches run in this thread. */
  readonly module: string | undefined;
  /** Time that one document may take on the thread. */
  readonly migrationTimeoutMs: number;
  readonly migrationHeapBytesMax: number;
  /** Requests are served meanwhile by the same process: the thread gives way to them. */
  readonly isBeside?: boolean;
};

export function createDocumentWork(options: WorkOptions): DocumentWork {
  const { module } = options;
  if (module?.startsWith('file:') !== true) return new InlineWork(options, undefined);
  return new ThreadedWork(options, module);
}

/** The words of an error that `up` threw, with its file and line. */
function describe(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : `threw ${String(error)}`;
}

/** Batches in the thread that calls. */
export class InlineWork implements DocumentWork {
  readonly #options: WorkLimits & Pick<WorkOptions, 'configuration'>;
  readonly #path: string | undefined;
  readonly #validators = new Map<string, Validator>();

  /** @param path of the configuration, for the places of errors */
  constructor(options: WorkLimits & Pick<WorkOptions, 'configuration'>, path: string | undefined) {
    this.#options = options;
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
    const { configuration, validationErrorsMax, documentCharactersMax } = this.#options;
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
  readonly #options: WorkOptions;
  readonly #module: string;
  #worker: Worker | undefined;
  #progress = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  #underWay: Waiting | undefined;
  #watch: NodeJS.Timeout | undefined;

  constructor(options: WorkOptions, module: string) {
    this.#options = options;
    this.#module = module;
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
    const { validationErrorsMax, documentCharactersMax, migrationHeapBytesMax } = this.#options;
    const data: ThreadData = {
      ...{ validationErrorsMax, documentCharactersMax },
      ...{ module: this.#module, progress: this.#progress, isBeside: this.#options.isBeside === true },
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
    const { migrationTimeoutMs } = this.#options;
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

/**
 * The writer thread: the only connection that writes while the folder is open. Every store over the folder joins it with a port. Batches
 * that wait at several ports when it is free become one transaction, and so share one fsync.
 */
import { dirname } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { connect, faultOf, inTransaction, messageOf } from '../connection.ts';
import { createErasure, type Erasure } from '../erasure.ts';
import { commitsAt, refuseFullDisk, requestsAt } from '../home-state.ts';
import { type Layout, layoutsOf } from '../sqlite-schema.ts';
import { commitBatches, prepareStatements, type Statements } from './apply.ts';
import type {
  EncodedUnits,
  HomeMessage,
  Piece,
  Reply,
  Request,
  SentUnits,
  WriterData,
} from './writer-messages.ts';

/**
 * Time to wait for a store that took part in the last transaction and has not asked again yet: it needs that long to settle its units and
 * encode the next. Without the wait, the batches of two stores alternate, each with an fsync of its own: two workers with 32 clients each
 * had 33 units in a transaction, and have 63 with it.
 */
const regroupMs = 0.2;

/** Pause of the filling of search indexes after a failure. */
const fillAgainMs = 10_000;

type Asked<K extends Request['kind']> = {
  readonly port: MessagePort;
  readonly request: Request & { kind: K };
};

type AskedCommit = { readonly port: MessagePort; readonly batch: EncodedUnits };

class Writer {
  readonly #data: WriterData;
  readonly #database: DatabaseSync;
  readonly #erasure: Erasure;
  readonly #statements: Statements;
  /** The stores, each with the pieces of the text of its next batch. */
  readonly #ports = new Map<MessagePort, string[]>();
  /** Stores of the last two transactions. */
  #recent: ReadonlySet<MessagePort> = new Set();
  #last: ReadonlySet<MessagePort> = new Set();
  #filling: NodeJS.Timeout | undefined;
  /** The last revision used. */
  #rev: number;

  constructor(data: WriterData) {
    this.#data = data;
    this.#database = connect(data.path, 'writer', data.connection);
    this.#erasure = createErasure(this.#database, data.logTruncateMs, data.connection.busyTimeoutMs);
    const layouts = layoutsOf(data.tables);
    this.#statements = prepareStatements(this.#database, layouts, data.numbers);
    void this.#fill(layouts);
    this.#rev = Number(this.#database.prepare('SELECT rev FROM comity_counters WHERE n = 0').get()?.rev);
  }

  /** Makes missing search texts in turns, between which requests are taken. A turn that fails is repeated later. */
  async #fill(layouts: readonly Layout[]): Promise<void> {
    const indexes = layouts.flatMap(({ table, words: index }) =>
      index === undefined ? [] : [{ table, index }],
    );
    if (indexes.length === 0) return;
    const { createFilling } = await import('./filling.ts');
    if (!this.#database.isOpen) return;
    const fill = createFilling(this.#database, indexes);
    const turn = (): void => {
      let pauseMs = 0;
      try {
        if (!fill()) return;
        this.#erasure.wrote();
      } catch {
        // A full disk: commits report it. Searches answer that the index is not complete.
        pauseMs = fillAgainMs;
      }
      this.#filling = setTimeout(turn, pauseMs);
    };
    turn();
  }

  join(port: MessagePort): void {
    this.#ports.set(port, []);
    port.on('message', (sent: Piece | Request) => {
      if (sent.kind === 'piece') this.#ports.get(port)?.push(sent.text);
      else this.#take(port, sent);
    });
    port.on('close', () => this.#ports.delete(port));
  }

  end(): void {
    this.#erasure.stop();
    clearTimeout(this.#filling);
    this.#database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    this.#database.close();
    for (const port of this.#ports.keys()) port.close();
  }

  /** Each store has one request under way, so one look at each of the other ports finds all that wait. */
  #take(port: MessagePort, request: Request): void {
    const commits: AskedCommit[] = [];
    const others: Asked<'purge' | 'probe'>[] = [];
    const sort = (from: MessagePort, asked: Request): void => {
      if (asked.kind === 'commit') {
        commits.push({ port: from, batch: this.#joined(from, asked.batch) });
      } else others.push({ port: from, request: asked });
    };
    sort(port, request);
    const silent = new Set(this.#ports.keys());
    silent.delete(port);
    const until = performance.now() + regroupMs;
    for (;;) {
      const requests = Atomics.load(this.#data.state, requestsAt);
      for (const other of silent) {
        const sent = receiveMessageOnPort(other)?.message as Piece | Request | undefined;
        if (sent === undefined) continue;
        if (sent.kind === 'piece') {
          this.#ports.get(other)?.push(sent.text);
          continue;
        }
        silent.delete(other);
        sort(other, sent);
      }
      const leftMs = until - performance.now();
      if (leftMs <= 0 || this.#recent.isDisjointFrom(silent)) break;
      Atomics.wait(this.#data.state, requestsAt, requests, leftMs);
    }
    const taken = new Set(commits.map((each) => each.port));
    this.#recent = taken.union(this.#last);
    this.#last = taken;
    if (commits.length > 0) this.#commit(commits);
    for (const each of others) this.#keep(each);
  }

  /** Adds the pieces that came before. Older ones are of a batch that was not sent to its end. */
  #joined(port: MessagePort, { units, numbers, piecesBefore, lastPiece }: SentUnits): EncodedUnits {
    const before = this.#ports.get(port)?.splice(0) ?? [];
    return { units, numbers, pieces: [...before.slice(before.length - piecesBefore), lastPiece] };
  }

  #commit(asked: readonly AskedCommit[]): void {
    try {
      const batches = asked.map(({ batch }) => batch);
      const { lastRev, results, changed } = commitBatches(
        this.#database,
        this.#statements,
        batches,
        this.#rev,
      );
      this.#rev = lastRev;
      this.#announce(changed, asked.length === 1 ? asked[0]?.port : undefined);
      for (const [index, { port }] of asked.entries()) {
        const result = results[index];
        if (result !== undefined) port.postMessage({ kind: 'committed', ...result } satisfies Reply);
      }
      this.#erasure.wrote();
    } catch (error) {
      // A commit that failed during its fsync may have left revisions on disk: they are not used again.
      for (const { batch } of asked) this.#rev += batch.units;
      const failed = failureOf(error);
      for (const { port } of asked) port.postMessage(failed);
    }
  }

  #keep({ port, request }: Asked<'purge' | 'probe'>): void {
    try {
      port.postMessage(request.kind === 'purge' ? this.#purge(port, request) : this.#probe());
      this.#erasure.wrote();
    } catch (error) {
      port.postMessage(failureOf(error));
    }
  }

  #purge(port: MessagePort, request: Request & { kind: 'purge' }): Reply {
    const table = this.#statements.of(request.table);
    if (table === undefined) throw new TypeError(`no table is named ${request.table}`);
    let rows = 0;
    inTransaction(this.#database, () => {
      let newest = 0;
      for (const id of request.ids) {
        const removed = table.removeOld.get(id, request.updatedBefore) as unknown as [number] | undefined;
        if (removed === undefined) continue;
        rows += 1;
        newest = Math.max(newest, removed[0]);
      }
      if (rows === 0) return;
      if (table === this.#statements.events) this.#statements.raisePurged.run(newest);
      this.#rev += 1;
      this.#statements.setCounter.run(this.#rev, 0);
      this.#statements.setCounter.run(this.#rev, table.number);
    });
    this.#announce(rows > 0 ? [table.number] : [], port);
    return { kind: 'purged', rows };
  }

  #probe(): Reply {
    refuseFullDisk(dirname(this.#data.path));
    this.#database.exec('UPDATE comity_counters SET rev = rev WHERE n = 0');
    return { kind: 'probed' };
  }

  /**
   * Announces changes before the first reply, so that a store that reads after any acknowledgement sees them.
   * @param knowing learns of them by its reply
   */
  #announce(changed: readonly number[], knowing: MessagePort | undefined): void {
    if (changed.length === 0) return;
    Atomics.add(this.#data.state, commitsAt, 1);
    const notice: Reply = { kind: 'changed', tables: changed };
    for (const port of this.#ports.keys()) if (port !== knowing) port.postMessage(notice);
  }
}

function failureOf(error: unknown): Reply {
  return { kind: 'failed', message: messageOf(error), fault: faultOf(error) };
}

function run(data: WriterData): void {
  const parent = parentPort;
  if (parent === null) throw new Error('writer-thread.ts runs only in a worker thread');
  const writer = new Writer(data);
  parent.on('message', (message: HomeMessage) => {
    if (message.kind === 'join') return writer.join(message.port);
    writer.end();
    parent.close();
  });
}

run(workerData as WriterData);

/**
 * Idempotency-Key (draft-ietf-httpapi-idempotency-key-header-07). The first request with a key claims it durably;
 * its result is stored in the same unit as the change it made, so there is no moment at which one is there
 * without the other. A later request with the key gets the stored result, and the graph makes the same answer of it.
 * Keys are private to their principal. What a key goes through stands at `Record_`.
 *
 * A result that holds a secret, such as a new API key, is kept encrypted under a key derived from the credential that asked (sealed-text.ts).
 * A repetition with that credential gets it again; one with another credential of the same principal is told 409 and where the result
 * lies (docs/decisions/0046).
 */
import { hash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { Request } from '../http/message.ts';
import type { Problem } from '../http/problem.ts';
import { parseIdempotencyKey } from '../http/syntax/idempotency-key.ts';
import { memoryBounds } from '../memory/bounds.ts';
import { audienceOf, callerOf } from '../model/principal.ts';
import type { Services } from '../store/capabilities.ts';
import { keptRow } from '../store/kept-row.ts';
import {
  type Change,
  type Commit,
  type MaybePromise,
  type NextRow,
  type Row,
  type Store,
  StoreUnavailable,
} from '../store/store.ts';
import type { Ask, Companion, Made } from './resource.ts';
import { openText, sealText } from './sealed-text.ts';

export const idempotencyTable = 'idempotency_keys';

/** A claim older than this is over whoever made it; no request is allowed to run that long. */
export const claimSeconds = 120;

export type Settled = { readonly made: Made; readonly rev: number } | { readonly refused: Problem };

export type Claim = {
  readonly status: 'first';
  readonly companion: Companion;
  /** Frees the key, or settles it with the store's refusal; later, where the store does not answer now. */
  release(refused: Problem | undefined): Promise<void>;
};

export type Idempotency = {
  /** @throws StoreUnavailable */
  claim(
    ask: Ask,
    fingerprint: string,
    /** Whether the result holds a secret. */
    isSecret?: boolean,
  ): Promise<Claim | { status: 'replay'; result: Settled } | { status: 'running' } | { status: 'other' }>;
};

export type IdempotencyOptions = Pick<Services, 'store' | 'clock' | 'newId'> & {
  /** How long a key is remembered; what the store keeps beyond that, until it is purged, counts no more. */
  readonly lifetimeSeconds: number;
  /** How results that hold secrets are kept; undefined: without what they hold. */
  readonly sealing?: Sealing | undefined;
};

export type Sealing = {
  /** The credential of the request where it cannot be guessed: a key or a token, but no password. */
  readonly secretOf: (request: Request, query: string | undefined) => string | undefined;
  readonly random: (count: number) => Buffer;
};

/**
 * What is known of a key.
 *
 *   free     no record, or one whose time is over: a request claims it, and of several that try at once one does
 *   claimed  by a request under way, which names the record's revision in the unit that settles it; others are told 409
 *   settled  with the result, which every later request gets until the key's time is over
 *
 *   free -> claimed     the claim, a unit of its own
 *   claimed -> settled  with the change itself, or with the store's refusal of it (a unique value taken, and the like)
 *   claimed -> free     the request was refused before the store was asked, lost every race, or failed
 *   claimed -> claimed  by another request once the process that claimed it has ended, or after `claimSeconds`: it settled nothing, hence
 *                       wrote nothing. One that was merely slow names a revision that no longer stands, so its change is refused
 *
 * After a failure of the store nobody knows whether the last unit was made. What puts the record right (unsettled-keys.ts) then goes on
 * in the background until the store answers: it frees the claim if the unit was not made, and changes nothing if it
 * was. So the client's next try is the first or gets the true result, and is told 409 for moments at most.
 */
type Record_ = {
  readonly fingerprint: string;
  readonly claim: string;
  /** The process of the request (`Store.processId`). */
  readonly holder: string;
  /** `sealed`: the content of the result, which `made` then leaves out; null where no credential could seal it. */
  readonly result: { made: Made; sealed?: string | null } | { refused: Problem } | null;
};

/** What makes two requests the same: method, target, content, and what whoever asks may see of the answer. */
export function fingerprintOf(ask: Ask, content: Uint8Array): string {
  const head = `${ask.request.method}\n${ask.request.target}\n${ask.request.fields.contentType ?? ''}\n${audienceOf(ask.principal)}\n`;
  return hash('sha256', `${hash('sha256', head, 'hex')}${hash('sha256', content, 'hex')}`, 'base64url');
}

export function createIdempotency(options: IdempotencyOptions): Idempotency {
  const { store, clock } = options;
  const unsettled = new UnsettledKeys(clock, claimSeconds * 1000);
  return {
    async claim(ask, fingerprint, isSecret = false) {
      const key = parseIdempotencyKey(ask.request.fields.idempotencyKey ?? '') ?? '';
      const id = hash('sha256', `${callerOf(ask.principal)}\n${key}`, 'base64url');
      await unsettled.finish(id);
      const found = await store.read(idempotencyTable, id);
      const now = clock();
      const secret = isSecret ? (options.sealing?.secretOf(ask.request, ask.query) ?? null) : undefined;
      const isFree = found === undefined || isOver(found, now, options.lifetimeSeconds);
      if (!isFree && !(await isLeft(store, found))) return judge(found, fingerprint, secret);
      const claiming: Claiming = {
        ...{ store, id, fingerprint, name: options.newId(), at: now, unsettled },
        seal: secret === undefined ? undefined : (text) => sealed(options, id, secret, text),
      };
      const expect = found === undefined ? ({ absent: true } as const) : { rev: found.rev };
      const commit = await store.commit(claimUnit(claiming, expect)).catch((error) => {
        // Whether the key is ours now nobody knows, and nobody will settle it.
        if (error instanceof StoreUnavailable) unsettled.add(id, () => forgetClaim(claiming));
        throw error;
      });
      if (commit.outcome === 'committed') return claimed(claiming, commit.rev);
      const current = commit.outcome === 'superseded' ? commit.current : undefined;
      return current === undefined ? { status: 'running' } : judge(current, fingerprint, secret);
    },
  };
}

type Claiming = {
  readonly store: Store;
  readonly id: string;
  readonly fingerprint: string;
  /** Of this claim alone. */
  readonly name: string;
  readonly at: number;
  readonly unsettled: UnsettledKeys;
  /** Undefined: the result is no secret. */
  readonly seal: ((text: string) => string | null) | undefined;
};

const purpose = 'comity idempotency result';

function sealed(
  { sealing }: IdempotencyOptions,
  id: string,
  secret: string | null,
  text: string,
): string | null {
  if (sealing === undefined || secret === null) return null;
  return sealText(text, { secret, id, purpose }, sealing.random);
}

function claimed(claiming: Claiming, rev: number): Claim {
  const { store, id, unsettled } = claiming;
  const change = (result: Record_['result'] | undefined): Change => ({
    table: idempotencyTable,
    id,
    expect: { rev },
    next: result === undefined ? null : recordRow(claiming, result),
  });
  return {
    status: 'first',
    companion: (made) => {
      const { seal } = claiming;
      if (seal === undefined || made.doc === null) return change({ made });
      return change({ made: { ...made, doc: null }, sealed: seal(made.doc) });
    },
    release: (refused) => {
      const unit = { changes: [change(refused === undefined ? undefined : { refused })], events: [] };
      // Superseded: the unit before was made after all, or somebody took the claim over. Either way the record is right.
      return unsettled.settle(id, () => store.commit(unit));
    },
  };
}

function claimUnit(claiming: Claiming, expect: Change['expect']) {
  const next = recordRow(claiming, null);
  return { changes: [{ table: idempotencyTable, id: claiming.id, expect, next }], events: [] };
}

/**
 * Frees a key that a claim may have taken. Asked by a claim once more, not by a read: units are made one
 * after the other, so the first one has been made by then, or never is.
 */
async function forgetClaim(claiming: Claiming): Promise<void> {
  const { store, id, name } = claiming;
  const commit = await store.commit(claimUnit(claiming, { absent: true }));
  const rev = ourRevision(commit, name);
  if (rev === undefined) return;
  await store.commit({ changes: [{ table: idempotencyTable, id, expect: { rev }, next: null }], events: [] });
}

/** The revision of the record where this claim stands in it. */
function ourRevision(commit: Commit, name: string): number | undefined {
  if (commit.outcome === 'committed') return commit.rev;
  if (commit.outcome !== 'superseded' || commit.current === undefined) return undefined;
  return (JSON.parse(commit.current.doc) as Record_).claim === name ? commit.current.rev : undefined;
}

/** @param secret what the request can open a sealed result with; null: nothing */
function judge(
  row: Row,
  fingerprint: string,
  secret: string | null | undefined,
): { status: 'replay'; result: Settled } | { status: 'running' } | { status: 'other' } {
  const record = JSON.parse(row.doc) as Record_;
  if (record.fingerprint !== fingerprint) return { status: 'other' };
  if (record.result === null) return { status: 'running' };
  if (!('made' in record.result)) return { status: 'replay', result: record.result };
  const { made: kept, sealed: closed } = record.result;
  const opened = closed === undefined ? kept.doc : openResult(closed, row.id, secret);
  if (opened === undefined) return { status: 'replay', result: { refused: sealedProblem(kept) } };
  const made = { ...kept, doc: opened };
  // The unit that settled the record is the one that made the change, so both have the same revision.
  return { status: 'replay', result: { made, rev: made.rev ?? row.rev } };
}

function openResult(
  closed: string | null,
  id: string,
  secret: string | null | undefined,
): string | undefined {
  if (closed === null || secret === null || secret === undefined) return undefined;
  return openText(closed, { secret, id, purpose });
}

function sealedProblem({ location }: Made): Problem {
  return { code: 'idempotency_result_sealed', context: { location } };
}

/** Whether the record is a claim whose process has ended. */
function isLeft(store: Pick<Store, 'hasEnded'>, { doc }: Row): MaybePromise<boolean> {
  const { result, holder } = JSON.parse(doc) as Record_;
  return result === null && store.hasEnded(holder);
}

/** A claim is not forgotten while its request may run, however short the time is that keys are remembered. */
function isOver(row: Row, now: number, lifetimeSeconds: number): boolean {
  const age = now - row.updatedAt;
  if (age <= claimSeconds * 1000 && age <= lifetimeSeconds * 1000) return false;
  const isClaim = (JSON.parse(row.doc) as Record_).result === null;
  return age > (isClaim ? claimSeconds : lifetimeSeconds) * 1000;
}

function recordRow({ store, fingerprint, name, at }: Claiming, result: Record_['result']): NextRow {
  const record: Record_ = { fingerprint, claim: name, holder: store.processId, result };
  return keptRow(JSON.stringify(record), null, at, at);
}

/** Between two rounds of tries: what a client on another process may be told 409 for once the store answers. */
const roundMs = 500;
/** What an answer waits for its key at most; a store that answers takes milliseconds. */
const waitMs = 1000;
/** Beyond these a key is left to its age. A request with one waits for the store, so there are hardly more. */
const keysMax = memoryBounds.unsettledKeys.entries;

type Waiting = { readonly since: number; readonly settle: () => Promise<unknown>; trying?: Promise<void> };

/**
 * Records of Idempotency-Keys that must still be put right, because the store did not answer when it was tried
 * (idempotency.ts). Each is tried again until the store answers, or until its claim is so old that anyone may take it over.
 *
 * A request that brings such a key to this process puts it right first, so it is never told that itself is still running.
 */
class UnsettledKeys {
  readonly #clock: () => number;
  readonly #ageMs: number;
  readonly #waiting = new Map<string, Waiting>();
  #timer: NodeJS.Timeout | undefined;

  /** @param ageMs after which a claim is over by itself */
  constructor(clock: () => number, ageMs: number) {
    this.#clock = clock;
    this.#ageMs = ageMs;
  }

  /** Leaves it to the rounds. @param settle is called again while it rejects with StoreUnavailable */
  add(id: string, settle: () => Promise<unknown>): void {
    this.#keep(id, settle);
  }

  /** Tries at once and waits for it, but not for long; after that it is left to the rounds. */
  async settle(id: string, settle: () => Promise<unknown>): Promise<void> {
    const tried = this.#attempt(id, this.#keep(id, settle)).catch((error) => {
      if (!(error instanceof StoreUnavailable)) throw error;
    });
    await Promise.race([tried, pause(waitMs, undefined, { ref: false })]);
  }

  /** Puts the record right now, where one is waiting. @throws StoreUnavailable */
  async finish(id: string): Promise<void> {
    const entry = this.#waiting.get(id);
    if (entry !== undefined) await this.#attempt(id, entry);
  }

  #keep(id: string, settle: () => Promise<unknown>): Waiting {
    const before = this.#waiting.get(id)?.settle;
    const entry: Waiting = {
      since: this.#clock(),
      settle: before === undefined ? settle : () => before().then(settle),
    };
    if (this.#waiting.size < keysMax) this.#waiting.set(id, entry);
    this.#schedule();
    return entry;
  }

  #attempt(id: string, entry: Waiting): Promise<void> {
    entry.trying ??= entry
      .settle()
      .then(
        () => this.#forget(id, entry),
        (error) => {
          if (!(error instanceof StoreUnavailable)) this.#forget(id, entry);
          throw error;
        },
      )
      .finally(() => {
        delete entry.trying;
      });
    return entry.trying;
  }

  #forget(id: string, entry: Waiting): void {
    if (this.#waiting.get(id) === entry) this.#waiting.delete(id);
  }

  #schedule(): void {
    if (this.#timer !== undefined || this.#waiting.size === 0) return;
    this.#timer = setTimeout(async () => {
      await this.#round();
      this.#timer = undefined;
      this.#schedule();
    }, roundMs);
    this.#timer.unref();
  }

  async #round(): Promise<void> {
    for (const [id, entry] of this.#waiting) {
      if (this.#clock() - entry.since > this.#ageMs) this.#forget(id, entry);
      else {
        try {
          await this.#attempt(id, entry);
        } catch {
          // The store does not answer yet: so neither will it for the others.
          return;
        }
      }
    }
  }
}

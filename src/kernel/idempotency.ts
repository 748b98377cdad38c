/**
 * Idempotency-Key (draft-ietf-httpapi-idempotency-key-header-07). The first request with a key claims it durably. Its
 * result is stored in the same unit as the change, so neither exists without the other. A later request with the key
 * gets the stored result, from which the graph makes the same response. Keys are private to their principal. `Record_`
 * describes the states of a key.
 *
 * A result with a secret, such as a new API key, is encrypted under a key derived from the credential of the request
 * (sealed-text.ts). A repetition with that credential gets the result; one with another credential of the same
 * principal gets 409 and the location of the result (docs/decisions/0046).
 */
import { hash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { Request } from '../http/message.ts';
import type { Problem } from '../http/problem.ts';
import { parseIdempotencyKey } from '../http/syntax/structured-field.ts';
import { memoryBounds } from '../memory/bounds.ts';
import { audienceOf, callerOf } from '../model/principal.ts';
import type { Services } from '../store/capabilities.ts';
import {
  type Change,
  type Commit,
  keptRow,
  type MaybePromise,
  type NextRow,
  type Row,
  type Store,
  StoreUnavailable,
} from '../store/store.ts';
import type { Ask, Companion, Made } from './resource.ts';
import { openText, sealText } from './sealed-text.ts';

export const idempotencyTable = 'idempotency_keys';

/** An older claim has expired, whichever process made it: no request may run that long. */
export const claimSeconds = 120;

type Settled = { readonly made: Made; readonly rev: number } | { readonly refused: Problem };

export type Claim = {
  readonly status: 'first';
  readonly companion: Companion;
  /** Frees the key, or settles it with the store's refusal; retried in the background if the store is unavailable. */
  release(refused: Problem | undefined): Promise<void>;
};

export type Idempotency = {
  /** @throws StoreUnavailable */
  claim(
    ask: Ask,
    fingerprint: string,
    /** The result contains a secret. */
    isSecret?: boolean,
  ): Promise<Claim | { status: 'replay'; result: Settled } | { status: 'running' } | { status: 'other' }>;
};

export type Sealing = {
  /** The credential of the request if it cannot be guessed: a key or a token, never a password. */
  readonly secretOf: (request: Request, query: string | undefined) => string | undefined;
  readonly random: (count: number) => Buffer;
};

/**
 * The states of a key.
 *
 *   free     no record, or an expired one: a request claims it; if several try at once, one succeeds
 *   claimed  by a running request, whose settling unit expects the record's revision; other requests get 409
 *   settled  with the result, which every later request gets until the key expires
 *
 *   free -> claimed     the claim, a unit of its own
 *   claimed -> settled  with the change itself, or with the store's refusal of it, such as a unique value in use
 *   claimed -> free     the request was refused before its change, lost every race, or failed
 *   claimed -> claimed  by another request, after the claiming process ended or after `claimSeconds`: it settled
 *                       nothing and therefore wrote nothing. If it was only slow, it expects an old revision, so
 *                       its change is refused
 *
 * After a failure of the store it is unknown whether the last unit was committed. `UnsettledKeys` then retries in the
 * background until the store responds: it frees the claim if the unit was not committed, and changes nothing if it was.
 * The client's next try is then the first or gets the true result, after 409 for moments at most.
 */
type Record_ = {
  readonly fingerprint: string;
  readonly claim: string;
  readonly holder: string;
  /** `sealed`: the encrypted content of the result, absent from `made`; null if no credential could seal it. */
  readonly result: { made: Made; sealed?: string | null } | { refused: Problem } | null;
};

/**
 * Identifies a request: method, target, content and its type, and what the caller may see of the response.
 * @param content its octets, or their sha-256 in hexadecimal
 */
export function fingerprintOf(ask: Ask, content: Uint8Array | string): string {
  const head = `${ask.request.method}\n${ask.request.target}\n${ask.request.fields.contentType ?? ''}\n${audienceOf(ask.principal)}\n`;
  const digest = typeof content === 'string' ? content : hash('sha256', content, 'hex');
  return hash('sha256', `${hash('sha256', head, 'hex')}${digest}`, 'base64url');
}

/**
 * @param lifetimeSeconds of a key; records that are older but not yet purged are ignored
 * @param sealing encrypts results that contain secrets; undefined: these are stored without their content
 */
export function createIdempotency(
  { store, clock, newId }: Pick<Services, 'store' | 'clock' | 'newId'>,
  lifetimeSeconds: number,
  sealing?: Sealing,
): Idempotency {
  const unsettled = new UnsettledKeys(clock, claimSeconds * 1000);
  return {
    async claim(ask, fingerprint, isSecret = false) {
      const key = parseIdempotencyKey(ask.request.fields.idempotencyKey ?? '') ?? '';
      const id = hash('sha256', `${callerOf(ask.principal)}\n${key}`, 'base64url');
      await unsettled.finish(id);
      const found = await store.read(idempotencyTable, id);
      const now = clock();
      const secret = isSecret ? (sealing?.secretOf(ask.request, ask.query) ?? null) : undefined;
      const isFree = found === undefined || isExpired(found, now, lifetimeSeconds);
      if (!isFree && !(await isAbandoned(store, found))) return judge(found, fingerprint, secret);
      const claiming: Claiming = {
        ...{ store, id, fingerprint, name: newId(), at: now, unsettled },
        seal:
          secret === undefined
            ? undefined
            : (text) => {
                if (sealing === undefined || secret === null) return null;
                return sealText(text, { secret, id, purpose }, sealing.random);
              },
      };
      const expect = found === undefined ? ({ absent: true } as const) : { rev: found.rev };
      const commit = await store.commit(claimUnit(claiming, expect)).catch((error) => {
        // The claim may have been committed, and this request will not settle it.
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
  /** Unique to this claim. */
  readonly name: string;
  readonly at: number;
  readonly unsettled: UnsettledKeys;
  /** Undefined: the result contains no secret. */
  readonly seal: ((text: string) => string | null) | undefined;
};

const purpose = 'comity idempotency result';

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
      // Superseded: the earlier unit was committed, or another request took the claim over; the record is right.
      return unsettled.settle(id, () => store.commit(unit));
    },
  };
}

function claimUnit(claiming: Claiming, expect: Change['expect']) {
  const next = recordRow(claiming, null);
  return { changes: [{ table: idempotencyTable, id: claiming.id, expect, next }], events: [] };
}

/**
 * Frees a key that a claim may have taken. It repeats the claim instead of reading: the store commits units in order,
 * so by then the first claim has been committed or never will be.
 */
async function forgetClaim(claiming: Claiming): Promise<void> {
  const { store, id, name } = claiming;
  const commit = await store.commit(claimUnit(claiming, { absent: true }));
  const rev = ourRevision(commit, name);
  if (rev === undefined) return;
  await store.commit({ changes: [{ table: idempotencyTable, id, expect: { rev }, next: null }], events: [] });
}

/** The record's revision if this claim holds it. */
function ourRevision(commit: Commit, name: string): number | undefined {
  if (commit.outcome === 'committed') return commit.rev;
  if (commit.outcome !== 'superseded' || commit.current === undefined) return undefined;
  return (JSON.parse(commit.current.doc) as Record_).claim === name ? commit.current.rev : undefined;
}

/** @param secret the credential that can open a sealed result; null: none */
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
  // The unit that settled the record also made the change, so both have the same revision.
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

/** Returns true for a claim whose process has ended. */
function isAbandoned(store: Pick<Store, 'hasEnded'>, { doc }: Row): MaybePromise<boolean> {
  const { result, holder } = JSON.parse(doc) as Record_;
  return result === null && store.hasEnded(holder);
}

/** A claim lasts as long as its request may run, even if the lifetime of keys is shorter. */
function isExpired(row: Row, now: number, lifetimeSeconds: number): boolean {
  const age = now - row.updatedAt;
  if (age <= claimSeconds * 1000 && age <= lifetimeSeconds * 1000) return false;
  const isClaim = (JSON.parse(row.doc) as Record_).result === null;
  return age > (isClaim ? claimSeconds : lifetimeSeconds) * 1000;
}

function recordRow({ store, fingerprint, name, at }: Claiming, result: Record_['result']): NextRow {
  const record: Record_ = { fingerprint, claim: name, holder: store.processId, result };
  return keptRow(JSON.stringify(record), null, at, at);
}

/** Pause between two rounds: a client of another process may get 409 for this long after the store recovers. */
const roundMs = 500;
/** The longest that a response waits for its key; a working store needs milliseconds. */
const waitMs = 1000;
/** Further keys are left to expire. A request with such a key waits for the store, so there are hardly more. */
const keysMax = memoryBounds.unsettledKeys.entries;

type Waiting = { readonly since: number; readonly settle: () => Promise<unknown>; trying?: Promise<void> };

/**
 * Records of Idempotency-Keys whose settling failed because the store was unavailable. Each is retried until the store
 * responds or the claim has expired.
 *
 * A request with such a key in this process first waits for the retry, so it never gets 409 because of its own earlier
 * try.
 */
class UnsettledKeys {
  readonly #clock: () => number;
  readonly #ageMs: number;
  readonly #waiting = new Map<string, Waiting>();
  #timer: NodeJS.Timeout | undefined;

  /** @param ageMs after which a claim expires */
  constructor(clock: () => number, ageMs: number) {
    this.#clock = clock;
    this.#ageMs = ageMs;
  }

  /** Leaves the record to the rounds. @param settle is called again while it rejects with StoreUnavailable */
  add(id: string, settle: () => Promise<unknown>): void {
    this.#keep(id, settle);
  }

  /** Tries immediately and waits at most `waitMs`; after that the rounds continue. */
  async settle(id: string, settle: () => Promise<unknown>): Promise<void> {
    const tried = this.#attempt(id, this.#keep(id, settle)).catch((error) => {
      if (!(error instanceof StoreUnavailable)) throw error;
    });
    await Promise.race([tried, pause(waitMs, undefined, { ref: false })]);
  }

  /** Settles a waiting record immediately. @throws StoreUnavailable */
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
          // The store is still unavailable, so the other records would fail as well.
          return;
        }
      }
    }
  }
}

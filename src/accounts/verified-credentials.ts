/**
 * A cache of verified credentials, so that most requests need no signature check, hash or look-up (§5.1). A verdict is reused only
 * while it has not expired and its rows are unchanged:
 *
 * - In a store that only this process writes, an unchanged table proves it; after a change the rows are read.
 * - In a shared store every use reads the versions of the tables, and the rows if a version changed, in the same turn of the event loop
 *   as the reads of the request, which the store batches; `confirmed` holds the result. All versions of a turn are one statement:
 *   reading the two rows of a session at each use was three times the work for PostgreSQL.
 *
 * Refused credentials are not cached. Concurrent requests with the same credential verify it once.
 */
import { OctetCache, octetsOfText, octetsOfValue } from '../memory/octet-cache.ts';
import type { Known } from '../model/principal.ts';
import type { CommitStage } from '../store/stages.ts';
import type { MaybePromise, Store } from '../store/store.ts';
import {
  CredentialEnds,
  changesOf,
  holdsSince,
  stillHolds,
  type Versions,
  type WatchedTable,
  type WatchedTables,
  watchTables,
} from './credential-ends.ts';
import type { Bad, Good, Verdict } from './verdict.ts';

export type Unverified = {
  /** Cache key; never contains a password. */
  readonly name: string;
  /** Must be equal as well, where one name has one credential at a time. A digest, if it is of a password. */
  readonly proof?: string;
  /** Origin of a credential with a proof; place and proof find the name, so that a password is decoded only once. */
  readonly place?: string;
  readonly verify: () => MaybePromise<Verdict>;
  /** True if `verify` may be kept, to verify the credential again; false if it holds a password. */
  readonly repeatable: boolean;
};

type CheckedStore = Pick<Store, 'shared' | 'read' | 'version' | 'onChange'>;

/** `seen`: changes of the tables when the rows last held, -1 to read them; `heldAt`: their versions, in a shared store. */
type Remembered = {
  readonly name: string;
  readonly proof: string;
  readonly verdict: Good;
  readonly known: Known;
  readonly tables: readonly WatchedTable[];
  seen: number;
  heldAt: Versions;
};

/** A name takes a seventh of the memory of a credential; only passwords have both. */
const partOfNames = 1 / 8;

/** Objects and closures of one credential that are not counted otherwise. */
const entryOctets = 1024;

/** The name counts twice: `verify` holds the credential that it was built from. */
function octetsOfRemembered({ name, proof, verdict }: Remembered): number {
  return entryOctets + 2 * octetsOfText(name) + octetsOfText(proof) + octetsOfValue(verdict);
}

export type VerifiedCredentials = Pick<
  CredentialMemory,
  'recall' | 'recallProven' | 'verify' | 'settle' | 'size' | 'close'
>;

/** @param octetsMax of memory (COMITY_VERIFIED_CREDENTIALS_BYTES_MAX) */
export function createVerifiedCredentials(
  store: CheckedStore,
  clock: () => number,
  octetsMax: number,
): VerifiedCredentials {
  return new CredentialMemory(store, clock, octetsMax);
}

class CredentialMemory {
  readonly #store: CheckedStore;
  readonly #clock: () => number;
  readonly #remembered: OctetCache<Remembered>;
  readonly #names: OctetCache<string>;
  readonly #underWay = new Map<string, Promise<Remembered | Bad>>();
  readonly #tables: WatchedTables;
  readonly #ends: CredentialEnds;

  constructor(store: CheckedStore, clock: () => number, octetsMax: number) {
    this.#store = store;
    this.#clock = clock;
    this.#remembered = new OctetCache({
      octetsMax: octetsMax * (1 - partOfNames),
      octetsOf: octetsOfRemembered,
    });
    this.#names = new OctetCache({ octetsMax: octetsMax * partOfNames, octetsOf: octetsOfText });
    this.#ends = new CredentialEnds({
      clock,
      holds: (basis) => stillHolds(store, basis),
      since: (basis, heldAt) => {
        const tables = basis.map(({ table }) => this.#tables.of(table));
        return holdsSince(store, tables, basis, heldAt);
      },
    });
    this.#tables = watchTables(store, () => this.#ends.look());
  }

  /**
   * Returns the credential if it is cached and still holds, and counts a use. Another proof under the name drops the entry: the cache
   * must not reveal a right guess that the login limit would have refused.
   *
   * The look-up does not need constant time: a map compares only texts with equal hashes, and the seed of the hashes is random.
   * @throws StoreUnavailable
   */
  recall(name: string, proof = ''): Known | undefined {
    const entry = this.#remembered.get(name);
    if (entry === undefined) return undefined;
    return entry.proof === proof ? this.#use(entry) : this.#forget(entry);
  }

  /** Finds a credential by place and proof alone, because decoding a password costs more than the look-up. */
  recallProven(place: string, proof: string): Known | undefined {
    const name = this.#names.get(`${place}\n${proof}`);
    return name === undefined ? undefined : this.recall(name, proof);
  }

  /** Verifies a credential and caches it. @throws StoreUnavailable */
  verify(credential: Unverified): MaybePromise<Known | Bad> {
    const key = `${credential.proof ?? ''}\n${credential.name}`;
    const shared = this.#underWay.size === 0 ? undefined : this.#underWay.get(key);
    if (shared !== undefined) return this.#join(shared, credential);
    const verdict = credential.verify();
    if (!(verdict instanceof Promise)) {
      return 'problem' in verdict ? verdict : this.#admit(this.#remember(credential, verdict, 0));
    }
    const own = verdict
      .then((found) => ('problem' in found ? found : this.#remember(credential, found, -1)))
      .finally(() => this.#underWay.delete(key));
    this.#underWay.set(key, own);
    return own.then((found) => ('problem' in found ? found : this.#admit(found)));
  }

  /** Resolves when the listeners of every credential that one of the rows ended have been called. */
  settle(rows: Iterable<{ readonly table: string; readonly id: string }>): Promise<void> | undefined {
    return this.#ends.settle(rows);
  }

  size(): number {
    return this.#remembered.size;
  }

  close(): void {
    this.#tables.close();
    this.#ends.close();
  }

  #remember(
    { name, place, proof = '', verify, repeatable }: Unverified,
    verdict: Good,
    seen: 0 | -1,
  ): Remembered {
    const tables = verdict.basis.map(({ table }) => this.#tables.of(table));
    const again = repeatable ? verify : undefined;
    const known: Known = {
      principal: verdict.principal,
      scheme: verdict.scheme,
      session: verdict.session,
      key: verdict.key,
      enrolsOnly: verdict.enrolsOnly,
      makers: verdict.makers,
      hosts: verdict.hosts,
      confirmed: undefined,
      onEnd: (listener) => this.#ends.add({ verdict, again }, listener),
      // A commit of this process waits until its listeners were called (`settle`).
      ...(this.#store.shared ? { stands: () => this.#ends.stands({ verdict, again }) } : {}),
    };
    const entry = {
      name,
      proof,
      verdict,
      known,
      tables,
      seen: seen === 0 ? changesOf(tables) : -1,
      heldAt: [],
    };
    this.#remembered.set(name, entry);
    if (place !== undefined) this.#names.set(`${place}\n${proof}`, name);
    return entry;
  }

  #use(entry: Remembered): Known | undefined {
    const now = this.#clock();
    const { verdict } = entry;
    if (now >= verdict.expiresAt) return this.#forget(entry);
    const changes = changesOf(entry.tables);
    if (verdict.basis.length > 0 && (this.#store.shared || entry.seen !== changes)) {
      if (this.#store.shared) return this.#confirm(entry, this.#holdsInShared(entry));
      const holding = stillHolds(this.#store, verdict.basis);
      if (holding instanceof Promise) return this.#confirm(entry, holding);
      if (!holding) return this.#forget(entry);
      entry.seen = changes;
    }
    verdict.onUse?.(now);
    return entry.known;
  }

  /** Starts reading the rows now; the caller awaits `confirmed` before it acts. */
  #confirm(entry: Remembered, holding: Promise<boolean>): Known {
    const confirmed = holding.then((holds) => {
      if (holds) entry.verdict.onUse?.(this.#clock());
      else this.#forget(entry);
      return holds;
    });
    return { ...entry.known, confirmed };
  }

  async #holdsInShared(entry: Remembered): Promise<boolean> {
    const heldAt = await holdsSince(this.#store, entry.tables, entry.verdict.basis, entry.heldAt);
    if (heldAt !== undefined) entry.heldAt = heldAt;
    return heldAt !== undefined;
  }

  #forget(entry: Remembered): undefined {
    this.#remembered.delete(entry.name, entry);
  }

  /** The rows were read for this very request. */
  #admit(entry: Remembered): Known {
    entry.verdict.onUse?.(this.#clock());
    return entry.known;
  }

  /** This caller arrived after the verification started, so the rows may have changed before it arrived. */
  async #join(under: Promise<Remembered | Bad>, credential: Unverified): Promise<Known | Bad> {
    const found = await under;
    if ('problem' in found) return credential.repeatable ? this.#verifyAlone(credential) : found;
    return this.#use(found) ?? this.#verifyAlone(credential);
  }

  async #verifyAlone(credential: Unverified): Promise<Known | Bad> {
    const verdict = await credential.verify();
    return 'problem' in verdict ? verdict : this.#admit(this.#remember(credential, verdict, -1));
  }
}

/** The stage of a commit that judges the credentials that rest on its rows before the caller learns of it. */
export function credentialsStage(credentials: Pick<VerifiedCredentials, 'settle'>): CommitStage {
  return (unit, commit) =>
    commit(unit).then((result) => {
      if (result.outcome !== 'committed') return result;
      // Rows that are new in this unit have no credentials yet.
      const settling = credentials.settle(unit.changes);
      return settling === undefined ? result : settling.then(() => result);
    });
}

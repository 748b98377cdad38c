/**
 * Credentials that were found good, so that most requests need no signature, hash or look-up (§5.1). Nothing is trusted because
 * it was good once: a verdict is used again only while time has not ended it and the rows that it rests on are what they were.
 *
 * - In a store that this process has for itself every change is known before it is acknowledged, so an unchanged table is proof, and
 *   after a change the rows are read.
 * - In a shared store another process may have changed them, so every use asks, in one turn of the event loop with what the request is
 *   about: the store sends both at once, and `confirmed` says what came of it. Asked is for the versions of the tables, and for the
 *   rows where one of those is not what it was when the rows were last read. All versions of a turn are one statement: reading the
 *   two rows of a session for each use was three times the work for PostgreSQL.
 *
 * What is refused is not remembered. A credential that many requests bring at once is verified once.
 */
import { OctetCache, octetsOfText, octetsOfValue } from '../memory/octet-cache.ts';
import type { Known } from '../model/credential.ts';
import type { Commit, MaybePromise, Store, Unit } from '../store/store.ts';
import {
  areSame,
  changesOf,
  knownVersions,
  readVersions,
  stillHolds,
  type Versions,
  type WatchedTable,
  type WatchedTables,
  watchTables,
} from './basis.ts';
import { CredentialEnds } from './credential-ends.ts';
import type { Bad, Good, Verdict } from './verdict.ts';

export type Unverified = {
  /** What it is remembered by. Holds no password. */
  readonly name: string;
  /**
   * What must be equal besides, where a name has one credential at a time; left out where the name is all of it. It is kept, so of
   * a password it is a digest.
   */
  readonly proof?: string;
  /** Where a credential with a proof came from: with the proof it finds the name, so that reading a password is not repeated. */
  readonly place?: string;
  readonly verify: () => MaybePromise<Verdict>;
  /** Whether `verify` may be kept, to look again whether it still holds; one that knows a password may not. */
  readonly repeatable: boolean;
};

export type VerifiedCredentialsOptions = {
  readonly store: Pick<Store, 'shared' | 'read' | 'version' | 'onChange'>;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
  readonly verifiedCredentialsBytesMax: number;
};

/**
 * Where the basis was known to hold: `seen` at so many changes of its tables, -1 where it has to be looked at; `heldAt` at these
 * versions, where the store is shared.
 */
type Remembered = {
  readonly name: string;
  readonly proof: string;
  readonly verdict: Good;
  readonly known: Known;
  readonly tables: readonly WatchedTable[];
  seen: number;
  heldAt: Versions;
};

/** A name takes a seventh of what a credential takes; only passwords have both. */
const partOfNames = 1 / 8;

/** The objects and closures of one credential, besides what is counted of it. */
const entryOctets = 1024;

/** The name counts twice: `verify` holds the credential that it was made of. */
function octetsOfRemembered({ name, proof, verdict }: Remembered): number {
  return entryOctets + 2 * octetsOfText(name) + octetsOfText(proof) + octetsOfValue(verdict);
}

export type VerifiedCredentials = Pick<
  CredentialMemory,
  'recall' | 'recallProven' | 'verify' | 'settle' | 'size' | 'close'
>;

export function createVerifiedCredentials(options: VerifiedCredentialsOptions): VerifiedCredentials {
  return new CredentialMemory(options);
}

class CredentialMemory {
  readonly #store: VerifiedCredentialsOptions['store'];
  readonly #clock: () => number;
  readonly #remembered: OctetCache<Remembered>;
  /** Names by place and proof, of those that have a proof. */
  readonly #names: OctetCache<string>;
  readonly #underWay = new Map<string, Promise<Remembered | Bad>>();
  readonly #tables: WatchedTables;
  readonly #ends: CredentialEnds;

  constructor({ store, clock, verifiedCredentialsBytesMax }: VerifiedCredentialsOptions) {
    this.#store = store;
    this.#clock = clock;
    const octetsMax = verifiedCredentialsBytesMax;
    this.#remembered = new OctetCache({
      octetsMax: octetsMax * (1 - partOfNames),
      octetsOf: octetsOfRemembered,
    });
    this.#names = new OctetCache({ octetsMax: octetsMax * partOfNames, octetsOf: octetsOfText });
    this.#ends = new CredentialEnds({ clock, holds: (basis) => stillHolds(store, basis) });
    this.#tables = watchTables(store, () => this.#ends.look());
  }

  /**
   * Who the credential stands for, where that is remembered and still holds. Counts as a use. Another proof under the name makes it
   * forgotten: whoever guesses must not learn from what is remembered what a limit keeps them from trying.
   *
   * A map compares texts whose hashes are equal, and the seed of those hashes is random: the time that it takes tells nothing.
   * @throws StoreUnavailable
   */
  recall(name: string, proof = ''): Known | undefined {
    const entry = this.#remembered.get(name);
    if (entry === undefined) return undefined;
    return entry.proof === proof ? this.#use(entry) : this.#forget(entry);
  }

  /** The same for a credential of which only its place and proof are known yet: decoding a password costs more than finding it. */
  recallProven(place: string, proof: string): Known | undefined {
    const name = this.#names.get(`${place}\n${proof}`);
    return name === undefined ? undefined : this.recall(name, proof);
  }

  /** Verifies a credential that is not remembered, and remembers it. @throws StoreUnavailable */
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

  /** Resolves when whatever holds on to a credential that one of the rows ended has been told. */
  settle(rows: Iterable<{ readonly table: string; readonly id: string }>): Promise<void> {
    return this.#ends.settle(rows);
  }

  /** How many are remembered. */
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
      makers: verdict.makers,
      hosts: verdict.hosts,
      confirmed: undefined,
      onEnd: (listener) => this.#ends.add({ verdict, again }, listener),
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

  /** The rows are read now; what is done with the answer waits. */
  #confirm(entry: Remembered, holding: Promise<boolean>): Known {
    const confirmed = holding.then((holds) => {
      if (holds) entry.verdict.onUse?.(this.#clock());
      else this.#forget(entry);
      return holds;
    });
    return { ...entry.known, confirmed };
  }

  /** Rows hold at a version that was known before they were asked for: what is read together may be of different moments. */
  async #holdsInShared(entry: Remembered): Promise<boolean> {
    const { tables } = entry;
    // What others learnt meanwhile may be older than what is asked for here, so only one's own answer counts.
    if (areSame(knownVersions(tables), entry.heldAt)) {
      if (areSame(await readVersions(this.#store, tables), entry.heldAt)) return true;
    }
    const before = knownVersions(tables);
    const holding = stillHolds(this.#store, entry.verdict.basis);
    const learning = before.includes(undefined) ? readVersions(this.#store, tables) : undefined;
    const [holds] = await Promise.all([holding, learning]);
    if (holds) entry.heldAt = before;
    return holds;
  }

  #forget(entry: Remembered): undefined {
    this.#remembered.delete(entry.name, entry);
  }

  /** Fresh: what was read to verify it was read for this very request. */
  #admit(entry: Remembered): Known {
    entry.verdict.onUse?.(this.#clock());
    return entry.known;
  }

  /** A caller that waits with others for one verification came after it began: what it rests on may have changed before that. */
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

/** The same store, but a commit that changes or removes a row resolves after what rests on the row was told. */
export function settlingCredentials<S extends Pick<Store, 'commit'>>(
  store: S,
  credentials: Pick<VerifiedCredentials, 'settle'>,
): S {
  return {
    ...store,
    async commit(unit: Unit): Promise<Commit> {
      const commit = await store.commit(unit);
      if (commit.outcome !== 'committed') return commit;
      // Rows that are new in this unit are none that anything rests on, and are not found.
      await credentials.settle(unit.changes);
      return commit;
    },
  };
}

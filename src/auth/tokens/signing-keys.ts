/**
 * The signing keys of all processes on one store. They stand in one row, so a change of the ring is one compare-and-swap and all
 * processes agree; each follows the row. Making, replacing and removing keys is looked after here, by time: nobody has to ask for it.
 */
import type { JWK } from 'jose';
import type { Observe } from '../../observe/observation.ts';
import { keptRow } from '../../store/kept-row.ts';
import { type Tried, tryCommit } from '../../store/lines.ts';
import { type Change, Overtaken, type Row, type Store } from '../../store/store.ts';
import { createTableLooks, type TableLooks } from '../../store/table-looks.ts';
import type { Audit, AuditFact } from '../audit-fact.ts';
import { signingKeysTable } from '../tables.ts';
import { leadMs, nextSignsFrom, type Ring, type RingTimes, signingAt, withoutSpent } from './key-ring.ts';
import {
  importSigningKey,
  makeSigningKey,
  type SigningAlgorithm,
  type SigningKey,
  type StoredKey,
} from './signing-key.ts';

export type SigningKeys = {
  /** The same on all processes: `urn:comity:...`. */
  name(): string;
  /** The key that signs now. */
  current(): SigningKey;
  /** The key of that name, if it is one of ours whose tokens may still be good. Looks in the store for one that is not known. */
  find(kid: string): Promise<SigningKey | undefined>;
  /** The public halves of all of them, as in `/.well-known/jwks.json`. */
  published(): readonly JWK[];
  /** How long a copy of that may be kept, in seconds: less than a key is published before it signs. */
  readonly publishedSeconds: number;
  /** Makes and removes what is due now, as a timer does besides. */
  look(): Promise<void>;
  /** Stops following and waits for the look under way. */
  close(): Promise<void>;
};

export type SigningKeysOptions = RingTimes & {
  readonly store: Store;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
  readonly newId: () => string;
  readonly observe: Observe;
  readonly audit: Pick<Audit, 'entry'>;
  readonly signingAlgorithm: SigningAlgorithm;
};

/** Id of the row that holds the ring. */
const ringId = 'ring';
const publishedSecondsMax = 300;
/** Between two looks for a key that a token names and nobody here knows. */
const unknownLookMs = 1000;
/** Timers hold no more; a look that finds nothing to do costs one read. */
const lookMsMax = 3_600_000;

/** Loads the ring, or makes the first key. @throws StoreUnavailable */
export async function createSigningKeys(options: SigningKeysOptions): Promise<SigningKeys> {
  const ring = new KeyRing(options);
  await ring.look();
  ring.follow();
  return ring;
}

class KeyRing implements SigningKeys {
  readonly publishedSeconds: number;
  readonly #options: SigningKeysOptions;
  readonly #looks: TableLooks;
  #name = '';
  #keys: readonly SigningKey[] = [];
  #rev = 0;
  #lookedAt = 0;

  constructor(options: SigningKeysOptions) {
    this.#options = options;
    const lead = leadMs(options.signingKeySeconds);
    this.#looks = createTableLooks({
      store: options.store,
      table: signingKeysTable,
      everyMs: Math.min(lookMsMax, lead / 4),
      work: () => this.#lookOnce(),
      onFailed: (error) => options.observe({ kind: 'store-failed', what: 'following signing keys', error }),
    });
    this.publishedSeconds = Math.max(1, Math.min(publishedSecondsMax, Math.floor(lead / 2000)));
  }

  name(): string {
    return this.#name;
  }

  current(): SigningKey {
    const key = signingAt(this.#keys, this.#options.clock());
    if (key === undefined) throw new Error('the ring of signing keys is empty');
    return key;
  }

  async find(kid: string): Promise<SigningKey | undefined> {
    const known = this.#known(kid);
    if (known !== undefined) return known;
    // Another process may have made it a moment ago. Tokens with made-up names must not cost a read each.
    if (this.#options.clock() - this.#lookedAt < unknownLookMs) return undefined;
    await this.look();
    return this.#known(kid);
  }

  published(): readonly JWK[] {
    return this.#keys.map((key) => key.published);
  }

  look(): Promise<void> {
    return this.#looks.look();
  }

  follow(): void {
    this.#looks.follow();
  }

  close(): Promise<void> {
    return this.#looks.close();
  }

  #lookOnce(): Promise<void> {
    const { store, clock } = this.#options;
    return store.lines.change({ table: signingKeysTable, id: ringId }, async () => {
      this.#lookedAt = clock();
      const row = await store.read(signingKeysTable, ringId);
      const ring: Ring = row === undefined ? this.#newRing() : (JSON.parse(row.doc) as Ring);
      const due = await this.#due(ring);
      if (due === undefined) return this.#adopt(ring, row?.rev ?? 0);
      const commit = await this.#commit(ring, due, row);
      return commit instanceof Overtaken ? commit : this.#adopt(due, commit.rev);
    });
  }

  /** The ring as it should be now; undefined: as it is. */
  async #due(ring: Ring): Promise<Ring | undefined> {
    const now = this.#options.clock();
    const kept = withoutSpent(ring, this.#options, now);
    const signsFrom = nextSignsFrom(kept, this.#options, now);
    if (signsFrom === undefined) return kept === ring ? undefined : kept;
    const made = await makeSigningKey(this.#options.signingAlgorithm, this.#options.newId(), signsFrom);
    return { ...kept, keys: [...kept.keys, made] };
  }

  #newRing(): Ring {
    return { name: `urn:comity:${this.#options.newId()}`, keys: [] };
  }

  /** Of several processes that find the same due, one makes it and the others read what it made. */
  async #commit(before: Ring, after: Ring, row: Row | undefined): Promise<Tried> {
    const { store, clock, audit } = this.#options;
    const now = clock();
    const next = keptRow(
      JSON.stringify(after),
      null,
      row?.createdAt ?? now,
      Math.max(now, row?.updatedAt ?? 0),
    );
    const expect = row === undefined ? ({ absent: true } as const) : { rev: row.rev };
    const changes: Change[] = [{ table: signingKeysTable, id: ringId, expect, next }];
    const made = after.keys.filter((key) => !before.keys.includes(key));
    // The first key of all takes nobody's place.
    if (row !== undefined) changes.push(...made.map((key) => audit.entry(rotationFact(key))));
    const commit = await tryCommit(store, { changes, events: [] });
    if (!(commit instanceof Overtaken)) this.#report(before, after);
    return commit;
  }

  #report(before: Ring, after: Ring): void {
    const { observe } = this.#options;
    for (const key of after.keys) {
      if (before.keys.includes(key)) continue;
      observe({ kind: 'signing-key-made', kid: key.kid, algorithm: key.algorithm });
    }
    for (const key of before.keys) {
      if (!after.keys.includes(key)) observe({ kind: 'signing-key-retired', kid: key.kid });
    }
  }

  async #adopt(ring: Ring, rev: number): Promise<void> {
    if (rev === this.#rev) return;
    const known = new Map(this.#keys.map((key) => [key.kid, key]));
    this.#keys = await Promise.all(ring.keys.map((key) => known.get(key.kid) ?? importSigningKey(key)));
    this.#name = ring.name;
    this.#rev = rev;
  }

  #known(kid: string): SigningKey | undefined {
    return this.#keys.find((key) => key.kid === kid);
  }
}

function rotationFact({ kid, algorithm, signsFrom }: StoredKey): AuditFact {
  const detail = { algorithm, signsFrom: new Date(signsFrom).toISOString() };
  return { type: 'signing_key.rotated', actor: null, subject: kid, address: null, detail };
}

/**
 * The signing keys of all processes on one store. They are one row, so that a change is one compare-and-swap, and every process follows
 * the row. A timer creates, replaces and removes keys.
 */
import type { JWK } from 'jose';
import type { Services } from '../../store/capabilities.ts';
import { keptRow } from '../../store/kept-row.ts';
import { type Tried, tryCommit } from '../../store/lines.ts';
import { type Change, Overtaken, type Row } from '../../store/store.ts';
import { createTableLooks, type TableLooks } from '../../store/table-looks.ts';
import { signingKeysTable } from '../account-tables.ts';
import type { Audit, AuditFact } from '../audit-fact.ts';
import {
  importSigningKey,
  leadMs,
  makeSigningKey,
  nextSignsFrom,
  type Ring,
  type RingTimes,
  type SigningAlgorithm,
  type SigningKey,
  type StoredKey,
  signingAt,
  withoutSpent,
} from './key-ring.ts';

export type SigningKeys = {
  /** The same on all processes: `urn:comity:...`. */
  name(): string;
  current(): SigningKey;
  /** Finds a key whose tokens may still be valid; reads the store for an unknown one. */
  find(kid: string): Promise<SigningKey | undefined>;
  /** The public keys, as in `/.well-known/jwks.json`. */
  published(): readonly JWK[];
  /** Seconds for which clients may cache them: less than a key is published before it signs. */
  readonly publishedSeconds: number;
  /** Creates and removes the keys that are due, as the timer does. */
  look(): Promise<void>;
  /** Stops following the row; resolves when the current read has ended. */
  close(): Promise<void>;
};

export type SigningKeysOptions = RingTimes &
  Pick<Services, 'store' | 'clock' | 'newId' | 'observe'> & {
    readonly audit: Pick<Audit, 'entry'>;
    readonly signingAlgorithm: SigningAlgorithm;
  };

const ringId = 'ring';
const publishedSecondsMax = 300;
/** Pause between two reads for unknown key ids. */
const unknownLookMs = 1000;
/** Longest timer; a look without work costs one read. */
const lookMsMax = 3_600_000;

/** Loads the ring, or creates the first key. @throws StoreUnavailable */
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
    // Another process may have created the key just now; invented key ids must not cost a read each.
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

  /** If several processes find the same change due, one commits it and the others read it. */
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
    // The first key replaces none, so it is not audited as a rotation.
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

/**
 * The Ed25519 keys with which all processes on one store sign `v1a` (§5.6). They stand in one row, so a change of the ring is one
 * compare-and-swap and all processes agree; each follows the row. Making, replacing and removing keys goes by time: key-ring.ts says when.
 * One ring for the whole instance, unlike secrets: a signature says who sent a delivery, and not to whom.
 */
import type { Observe } from '../../../observe/observation.ts';
import { keptRow } from '../../../store/kept-row.ts';
import { type Tried, tryCommit } from '../../../store/lines.ts';
import { Overtaken, type Row, type Store } from '../../../store/store.ts';
import { createTableLooks, type TableLooks } from '../../../store/table-looks.ts';
import { webhookKeysTable } from '../tables.ts';
import { leadMs, nextSignsFrom, type Ring, signingAt, withoutSpent } from './key-ring.ts';
import {
  importWebhookKey,
  makeWebhookKey,
  type PublishedKey,
  signWith,
  type WebhookKey,
} from './webhook-key.ts';

export type WebhookKeys = {
  /** Signatures in base64, one of each key that signs now, the current one first. Made beside the event loop: 57 us of another thread for each. */
  sign(content: Uint8Array): Promise<readonly string[]>;
  /** The public halves of all keys, for `/.well-known/jwks.json`. */
  published(): readonly PublishedKey[];
  /** How long a copy of that may be kept, in seconds: less than a key is published before it signs. */
  readonly publishedSeconds: number;
  /** Makes and removes what is due now, as a timer does besides. @throws StoreUnavailable */
  look(): Promise<void>;
  /** Stops following and waits for the look under way. */
  close(): Promise<void>;
};

export type WebhookKeysOptions = {
  readonly store: Pick<Store, 'read' | 'commit' | 'onChange' | 'lines'>;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
  readonly newId: () => string;
  readonly observe: Observe;
  /** Age at which a key is replaced, as of the keys of tokens. */
  readonly signingKeySeconds: number;
};

/** Id of the row that holds the ring. */
const ringId = 'ring';
const publishedSecondsMax = 300;
/** Timers hold no more; a look that finds nothing to do costs one read. */
const lookMsMax = 3_600_000;

/** Loads the ring, or makes the first key. @throws StoreUnavailable */
export async function createWebhookKeys(options: WebhookKeysOptions): Promise<WebhookKeys> {
  const ring = new KeyRing(options);
  await ring.look();
  ring.follow();
  return ring;
}

class KeyRing implements WebhookKeys {
  readonly publishedSeconds: number;
  readonly #options: WebhookKeysOptions;
  readonly #looks: TableLooks;
  #keys: readonly WebhookKey[] = [];
  #rev = 0;

  constructor(options: WebhookKeysOptions) {
    this.#options = options;
    const lead = leadMs(options.signingKeySeconds);
    this.#looks = createTableLooks({
      store: options.store,
      table: webhookKeysTable,
      everyMs: Math.min(lookMsMax, lead / 4),
      work: () => this.#lookOnce(),
      onFailed: (error) =>
        options.observe({ kind: 'store-failed', what: 'following the keys of webhooks', error }),
    });
    this.publishedSeconds = Math.max(1, Math.min(publishedSecondsMax, Math.floor(lead / 2000)));
  }

  sign(content: Uint8Array): Promise<readonly string[]> {
    const { signingKeySeconds, clock } = this.#options;
    const signing = signingAt(this.#keys, signingKeySeconds, clock());
    return Promise.all(signing.map((key) => signWith(key, content)));
  }

  published(): readonly PublishedKey[] {
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

  /** Of several processes that find the same due, one makes it and the others read what it made. */
  #lookOnce(): Promise<void> {
    const { store } = this.#options;
    return store.lines.change({ table: webhookKeysTable, id: ringId }, async () => {
      const row = await store.read(webhookKeysTable, ringId);
      const ring: Ring = row === undefined ? { keys: [] } : (JSON.parse(row.doc) as Ring);
      const due = this.#due(ring);
      if (due === ring) return this.#adopt(ring, row?.rev ?? 0);
      const commit = await this.#commit(ring, due, row);
      return commit instanceof Overtaken ? commit : this.#adopt(due, commit.rev);
    });
  }

  /** The ring as it should be now: the same where nothing is due. */
  #due(ring: Ring): Ring {
    const { signingKeySeconds, clock, newId } = this.#options;
    const now = clock();
    const kept = withoutSpent(ring.keys, signingKeySeconds, now);
    const signsFrom = nextSignsFrom(kept, signingKeySeconds, now);
    if (signsFrom !== undefined) return { keys: [...kept, makeWebhookKey(`whk_${newId()}`, now, signsFrom)] };
    return kept === ring.keys ? ring : { keys: kept };
  }

  async #commit(before: Ring, after: Ring, row: Row | undefined): Promise<Tried> {
    const { store, clock } = this.#options;
    const now = clock();
    const updatedAt = Math.max(now, row?.updatedAt ?? 0);
    const next = keptRow(JSON.stringify(after), null, row?.createdAt ?? now, updatedAt);
    const expect = row === undefined ? ({ absent: true } as const) : { rev: row.rev };
    const change = { table: webhookKeysTable, id: ringId, expect, next };
    const commit = await tryCommit(store, { changes: [change], events: [] });
    if (!(commit instanceof Overtaken)) this.#report(before, after);
    return commit;
  }

  #report(before: Ring, after: Ring): void {
    const { observe } = this.#options;
    for (const key of after.keys) {
      if (!before.keys.includes(key)) observe({ kind: 'signing-key-made', kid: key.kid, algorithm: 'EdDSA' });
    }
    for (const key of before.keys) {
      if (!after.keys.includes(key)) observe({ kind: 'signing-key-retired', kid: key.kid });
    }
  }

  #adopt(ring: Ring, rev: number): void {
    if (rev === this.#rev) return;
    const known = new Map(this.#keys.map((key) => [key.kid, key]));
    this.#keys = ring.keys.map((key) => known.get(key.kid) ?? importWebhookKey(key));
    this.#rev = rev;
  }
}

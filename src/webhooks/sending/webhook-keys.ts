/**
 * The Ed25519 keys with which all processes on one store sign `v1a` (§5.6). They are stored in one row, so a change is
 * one compare-and-swap and all processes agree; each follows the row. Keys are created, replaced and removed by time,
 * by the arithmetic below.
 *
 * The whole instance has one ring, unlike secrets: a signature authenticates the sender of a delivery, not its
 * recipient.
 */

import { createPrivateKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import type { Services } from '../../store/capabilities.ts';
import { keptRow } from '../../store/kept-row.ts';
import { type Tried, tryCommit } from '../../store/lines.ts';
import { Overtaken, type Row, type Store } from '../../store/store.ts';
import { createTableLooks, type TableLooks } from '../../store/table-looks.ts';
import { webhookKeysTable } from './sending-tables.ts';

export type WebhookKeys = {
  /**
   * Returns one signature in base64 for each key that signs now, the current key first. Runs in the thread pool: 57 µs
   * per key.
   */
  sign(content: Uint8Array): Promise<readonly string[]>;
  /** The public keys, for `/.well-known/jwks.json`. */
  published(): readonly PublishedKey[];
  /** Cache lifetime of the JWK set, in seconds: shorter than the time for which a key is published before it signs. */
  readonly publishedSeconds: number;
  /** Creates and removes keys that are due now; a timer does the same. @throws StoreUnavailable */
  look(): Promise<void>;
  /** Stops following and waits for the look under way. */
  close(): Promise<void>;
};

export type WebhookKeysOptions = Pick<Services, 'clock' | 'newId' | 'observe'> & {
  readonly store: Pick<Store, 'read' | 'commit' | 'onChange' | 'lines'>;
  /** Age at which a key is replaced, the same setting as for keys of tokens. */
  readonly signingKeySeconds: number;
};

const ringId = 'ring';
const publishedSecondsMax = 300;
/** Longest interval of looks; a look without work costs one read. */
const lookMsMax = 3_600_000;

/** Loads the ring, or creates the first key. @throws StoreUnavailable */
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

  /** If several processes find the same work, one commits it and the others read the result. */
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

  /** Returns the ring as it should be now; the same object if nothing is due. */
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

/*
 * The life of a `v1a` key, as arithmetic over the ring (pure):
 *
 *   published  from its creation, one lead before it signs (a tenth of the period, at least an hour if the period
 *              allows it), so that caches of the JWK set have it by then;
 *   signing    from `signsFrom` until one lead after the next key's, so that each delivery is signed with both for that
 *              long, and receivers configured by hand have time to take the next one;
 *   published  further, for as long as a receiver may verify its last signature;
 *   removed    then.
 */

/** In the order in which they begin to sign. */
type Ring = { readonly keys: readonly StoredKey[] };

const hourMs = 3_600_000;
const leadParts = 10;
/** After its last signature: the tolerance of receivers, and differing clocks of processes and receivers. */
const graceMs = 600_000;

/** Milliseconds for which a key is published before it signs, and for which two keys sign. */
export function leadMs(signingKeySeconds: number): number {
  const periodMs = signingKeySeconds * 1000;
  return Math.max(periodMs / leadParts, Math.min(hourMs, periodMs / 2));
}

/** Returns the keys that sign at this time, the current one first. The first key of all may sign before its time. */
export function signingAt<K extends Pick<StoredKey, 'signsFrom'>>(
  keys: readonly K[],
  signingKeySeconds: number,
  now: number,
): readonly K[] {
  const lead = leadMs(signingKeySeconds);
  const signing = keys.filter((key, at) => {
    const next = keys[at + 1];
    return key.signsFrom <= now && (next === undefined || next.signsFrom + lead > now);
  });
  return signing.length === 0 ? keys.slice(0, 1) : signing.reverse();
}

/** Returns the time from which a key to be created now must sign; undefined: none is needed yet. */
export function nextSignsFrom(
  keys: readonly Pick<StoredKey, 'signsFrom'>[],
  signingKeySeconds: number,
  now: number,
): number | undefined {
  const last = keys.at(-1);
  if (last === undefined) return now;
  if (last.signsFrom > now) return undefined;
  const lead = leadMs(signingKeySeconds);
  const due = last.signsFrom + signingKeySeconds * 1000;
  return now >= due - lead ? Math.max(due, now + lead) : undefined;
}

/** Removes keys that no receiver needs any more; returns the same array if there are none. */
export function withoutSpent<K extends Pick<StoredKey, 'signsFrom'>>(
  keys: readonly K[],
  signingKeySeconds: number,
  now: number,
): readonly K[] {
  const lead = leadMs(signingKeySeconds);
  const kept = keys.filter((_key, at) => {
    const next = keys[at + 1];
    return next === undefined || next.signsFrom + lead + graceMs > now;
  });
  return kept.length === keys.length ? keys : kept;
}

/*
 * A key pair of the signature version `v1a` (Ed25519, RFC 8032), as stored; published by RFC 8037 §2. The private key
 * is in the store, because every process must sign with it.
 */

type StoredKey = {
  /** `whk_...` */
  readonly kid: string;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  /** Milliseconds since the epoch. */
  readonly signsFrom: number;
  readonly privateJwk: { readonly x: string; readonly d: string };
};

/** An entry of the JWK set (RFC 7517 §4): the public key. */
type PublishedKey = {
  readonly kty: 'OKP';
  readonly crv: 'Ed25519';
  readonly x: string;
  readonly kid: string;
  readonly use: 'sig';
  readonly alg: 'EdDSA';
  readonly key_ops: string[];
};

type WebhookKey = Pick<StoredKey, 'kid' | 'signsFrom'> & {
  readonly privateKey: KeyObject;
  readonly published: PublishedKey;
};

/** Times in milliseconds since the epoch. @param kid a name that no other key has */
function makeWebhookKey(kid: string, createdAt: number, signsFrom: number): StoredKey {
  const { x, d } = generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' });
  if (x === undefined || d === undefined)
    throw new Error('a private key of the curve Ed25519 must have the members x and d');
  return { kid, createdAt, signsFrom, privateJwk: { x, d } };
}

function importWebhookKey({ kid, signsFrom, privateJwk: { x, d } }: StoredKey): WebhookKey {
  const curve = { kty: 'OKP', crv: 'Ed25519' } as const;
  const privateKey = createPrivateKey({ key: { ...curve, x, d }, format: 'jwk' });
  const published: PublishedKey = { ...curve, x, kid, use: 'sig', alg: 'EdDSA', key_ops: ['verify'] };
  return { kid, signsFrom, privateKey, published };
}

/**
 * Returns the signature in base64. Runs in the thread pool: it takes 57 µs on the reference machine, of which 3 µs
 * here; the HMAC of `v1` takes 3 µs.
 */
function signWith({ privateKey }: WebhookKey, content: Uint8Array): Promise<string> {
  return new Promise((resolve, reject) => {
    sign(null, content, privateKey, (error, signature) => {
      if (error === null) resolve(signature.toString('base64'));
      else reject(error);
    });
  });
}

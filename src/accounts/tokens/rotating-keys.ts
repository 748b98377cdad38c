/**
 * Signing keys that all processes on one store share. They are one row, a ring, so that a change is one compare-and-swap, and every
 * process follows the row. A timer creates, replaces and removes keys. Tokens and webhooks have a ring each
 * (signing-keys.ts, webhooks/sending/webhook-keys.ts), and decide which of its keys sign.
 *
 * A key is published from its creation, at least a tenth of the period (and up to an hour) before it signs, so that clients that cache
 * the JWK set have it by then. It stays published as long as somebody may verify its last signature; then it is removed.
 */
import type { Services } from '../../store/capabilities.ts';
import { createFollower, type Follower } from '../../store/follower.ts';
import { type Tried, tryCommit } from '../../store/lines.ts';
import { type Change, keptRow, type MaybePromise, Overtaken, type Row } from '../../store/store.ts';

type Key = {
  readonly kid: string;
  /** Milliseconds since the epoch. */
  readonly signsFrom: number;
};

/** The row: the keys in the order in which they begin to sign. */
export type Ring<S> = { readonly keys: readonly S[] };

/**
 * A kind of keys: where they are stored, and how they are made and used.
 * @typeParam R the row @typeParam S a key as stored @typeParam K a key that can sign
 */
export type RingKind<R extends Ring<S>, S extends Key, K extends Key> = {
  readonly table: string;
  /** What fails if the store does, for the log: `following signing keys`. */
  readonly what: string;
  /** Milliseconds for which a key stays after the next one began to sign. */
  readonly keptMs: number;
  /** The algorithm of the keys that this process creates. */
  readonly algorithm: string;
  /** The row if there is none yet. */
  readonly newRing: R;
  /** Creates a key; times in milliseconds since the epoch. */
  readonly create: (signsFrom: number, now: number) => MaybePromise<S>;
  readonly load: (stored: S) => MaybePromise<K>;
  /** Returns a change that commits with a key that replaces another one. */
  readonly auditRotation?: (key: S) => Change;
};

const ringId = 'ring';
const publishedSecondsMax = 300;
/** Longest interval of looks; a look without work costs one read. */
const lookMsMax = 3_600_000;

/** Loads the ring, or creates the first key. @throws StoreUnavailable */
export async function openRotatingKeys<R extends Ring<S>, S extends Key, K extends Key>(
  services: Services,
  kind: RingKind<R, S, K>,
): Promise<RotatingKeys<R, S, K>> {
  const keys = new RotatingKeys(services, kind);
  await keys.look();
  keys.follow();
  return keys;
}

export class RotatingKeys<R extends Ring<S>, S extends Key, K extends Key> {
  /** Seconds for which clients may cache the JWK set: less than a key is published before it signs. */
  readonly publishedSeconds: number;
  readonly #services: Services;
  readonly #kind: RingKind<R, S, K>;
  readonly #follower: Follower;
  #ring: R;
  #keys: readonly K[] = [];
  #rev = 0;
  #readAt = 0;

  constructor(services: Services, kind: RingKind<R, S, K>) {
    const { settings, observe } = services;
    const { what, newRing } = kind;
    this.#services = services;
    this.#kind = kind;
    this.#ring = newRing;
    const lead = leadMs(settings.signingKeySeconds);
    this.#follower = createFollower(
      () => this.#lookOnce(),
      (error) => observe({ kind: 'store-failed', what, error }),
      Math.min(lookMsMax, lead / 4),
    );
    this.publishedSeconds = Math.max(1, Math.min(publishedSecondsMax, Math.floor(lead / 2000)));
  }

  get ring(): R {
    return this.#ring;
  }

  /** All keys of the ring, in the order in which they begin to sign. */
  get keys(): readonly K[] {
    return this.#keys;
  }

  /** The time of the last read, in milliseconds since the epoch. */
  get readAt(): number {
    return this.#readAt;
  }

  /** Creates and removes keys that are due now; a timer does the same. @throws StoreUnavailable */
  look(): Promise<void> {
    return this.#follower.run();
  }

  follow(): void {
    this.#follower.follow((listener) => this.#services.store.onChange(this.#kind.table, listener));
  }

  /** Stops following and waits for the look under way. */
  close(): Promise<void> {
    return this.#follower.close();
  }

  #lookOnce(): Promise<void> {
    const { store, clock } = this.#services;
    const { table, newRing } = this.#kind;
    return store.lines.change({ table, id: ringId }, async () => {
      this.#readAt = clock();
      const row = await store.read(table, ringId);
      const ring = row === undefined ? newRing : (JSON.parse(row.doc) as R);
      const due = await this.#due(ring);
      if (due === ring) return this.#adopt(ring, row?.rev ?? 0);
      const commit = await this.#commit(ring, due, row);
      return commit instanceof Overtaken ? commit : this.#adopt(due, commit.rev);
    });
  }

  /** Returns the ring as it should be now; the same object if nothing is due. */
  async #due(ring: R): Promise<R> {
    const { clock, settings } = this.#services;
    const { keptMs, create } = this.#kind;
    const now = clock();
    const kept = withoutSpent(ring.keys, keptMs, now);
    const signsFrom = nextSignsFrom(kept, settings.signingKeySeconds, now);
    if (signsFrom !== undefined) return { ...ring, keys: [...kept, await create(signsFrom, now)] };
    return kept === ring.keys ? ring : { ...ring, keys: kept };
  }

  /** If several processes find the same change due, one commits it and the others read it. */
  async #commit(before: R, after: R, row: Row | undefined): Promise<Tried> {
    const { store, clock } = this.#services;
    const { table, auditRotation } = this.#kind;
    const now = clock();
    const updatedAt = Math.max(now, row?.updatedAt ?? 0);
    const next = keptRow(JSON.stringify(after), null, row?.createdAt ?? now, updatedAt);
    const expect = row === undefined ? ({ absent: true } as const) : { rev: row.rev };
    const changes: Change[] = [{ table, id: ringId, expect, next }];
    // The first key replaces none.
    if (row !== undefined && auditRotation !== undefined) {
      changes.push(...added(before, after).map(auditRotation));
    }
    const commit = await tryCommit(store, { changes, events: [] });
    if (!(commit instanceof Overtaken)) this.#report(before, after);
    return commit;
  }

  #report(before: R, after: R): void {
    const { observe } = this.#services;
    const { algorithm } = this.#kind;
    for (const { kid } of added(before, after)) observe({ kind: 'signing-key-made', kid, algorithm });
    for (const { kid } of added(after, before)) observe({ kind: 'signing-key-retired', kid });
  }

  async #adopt(ring: R, rev: number): Promise<void> {
    if (rev === this.#rev) return;
    const known = new Map(this.#keys.map((key) => [key.kid, key]));
    this.#keys = await Promise.all(ring.keys.map((key) => known.get(key.kid) ?? this.#kind.load(key)));
    this.#ring = ring;
    this.#rev = rev;
  }
}

/** Returns the keys of `after` that `before` does not hold. */
function added<S>(before: Ring<S>, after: Ring<S>): readonly S[] {
  return after.keys.filter((key) => !before.keys.includes(key));
}

const hourMs = 3_600_000;
const leadParts = 10;

/** Milliseconds for which a key is published before it signs. */
export function leadMs(signingKeySeconds: number): number {
  const periodMs = signingKeySeconds * 1000;
  return Math.max(periodMs / leadParts, Math.min(hourMs, periodMs / 2));
}

type SignsFrom = Pick<Key, 'signsFrom'>;

/** Returns the time from which a key to be created now must sign; undefined: none is needed yet. */
export function nextSignsFrom(
  keys: readonly SignsFrom[],
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

/**
 * Removes keys that are not needed any more; returns the same array if there are none.
 * @param keptMs milliseconds for which a key stays after the next one began to sign
 */
export function withoutSpent<S extends SignsFrom>(
  keys: readonly S[],
  keptMs: number,
  now: number,
): readonly S[] {
  const kept = keys.filter((_key, at) => {
    const next = keys[at + 1];
    return next === undefined || next.signsFrom + keptMs > now;
  });
  return kept.length === keys.length ? keys : kept;
}

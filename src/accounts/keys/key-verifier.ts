/**
 * Verifies API keys (§5.2). The administrator key is compared in constant time; any other key is found by its digest, so that the cost
 * does not grow with the number of keys: one read by id, and one for its account.
 *
 * - A secret key of an account acts for that account, within the key's scopes and the account's current ones.
 * - A key created with the administrator key, and every publishable key, is its own principal. A publishable key, which is public, may
 *   read what any authenticated client may, but nothing of its owner's.
 * - A secret key of an account that needs a second factor and has none is limited like the other credentials of the account.
 * - A key created with another key is valid only as long as that key, so that revoking a stolen key also revokes the thief's keys, and
 *   the host rules of that key apply to it (§4.10).
 */
import { timingSafeEqual } from 'node:crypto';
import { memoryBounds } from '../../memory/bounds.ts';
import { searchText } from '../../model/collection.ts';
import type { HostRules } from '../../model/host-rules.ts';
import { idPrefixes } from '../../model/id.ts';
import { type Authenticated, authenticated, type Scope } from '../../model/principal.ts';
import type { Services } from '../../store/capabilities.ts';
import { type Change, type MaybePromise, type Row, type Store, whenKnown } from '../../store/store.ts';
import { keySecretsTable, keysCollection, keysTable, readUser, usersTable } from '../account-tables.ts';
import {
  administrator,
  adminKeyHashOf,
  adminKeyRowId,
  type FollowedKey,
  secretsTable,
} from '../admin-key.ts';
import type { FactorRule } from '../second-factor/factor-row.ts';
import { principalOf } from '../users/user-row.ts';
import type { Bad, Basis, Good, Verdict } from '../verdict.ts';
import {
  digestOfKey,
  type Key,
  type KeyGrant,
  type KeyKind,
  type KeySecret,
  type KeyTunnel,
  kindOfKey,
} from './key-rows.ts';

/** The services and rules that decide about a key. */
type KeyJudgement = Pick<Services, 'store' | 'clock'> & {
  readonly factorRule: FactorRule;
  readonly uses: Pick<KeyUses, 'note' | 'intervalMs'>;
};

const publishableScopes: ReadonlySet<Scope> = new Set(['read']);
const unusable: Bad = { problem: 'invalid_api_key' };

/** @returns `Verifiers.key`; synchronous if the store is */
export function createKeyVerifier(
  judgement: KeyJudgement,
  administratorKey: Pick<FollowedKey, 'hash' | 'isKept'>,
): (key: string) => MaybePromise<Verdict> {
  const { store } = judgement;

  function judge(kind: KeyKind, row: Row): MaybePromise<Verdict> {
    const secret = JSON.parse(row.doc) as KeySecret;
    if (secret.kind !== kind) return unusable;
    return judgeGrant(judgement, secret, expiryTime(secret.expiresAt), [toBasis(keySecretsTable, row)]);
  }

  return (text) => {
    const digest = digestOfKey(text);
    if (timingSafeEqual(digest, administratorKey.hash()))
      return judgeAdminKey(store, administratorKey.isKept, digest);
    const kind = kindOfKey(text);
    if (kind === undefined) return unusable;
    return whenKnown(store.read(keySecretsTable, digest.toString('base64url')), (row) =>
      row === undefined ? unusable : judge(kind, row),
    );
  };
}

/** Verifies a grant against the current rows. @param endsAt expiry of the key's text, in milliseconds since the epoch */
export function judgeGrant(
  { store, clock, uses, factorRule }: KeyJudgement,
  grant: KeyGrant,
  endsAt: number,
  basis: readonly Basis[],
): MaybePromise<Verdict> {
  const { key, kind, owner, tunnel } = grant;
  const scopes =
    kind === 'secret' ? grant.scopes : grant.scopes.filter((each) => publishableScopes.has(each));
  const itself = (id: string) => authenticated({ id, scopes });

  function standFor(rest: Rest): MaybePromise<Verdict> {
    if (!owner.startsWith(idPrefixes.account)) {
      return good(key, itself(kind === 'secret' ? owner : key), rest, uses);
    }
    return whenKnown(store.read(usersTable, owner), (row) => {
      if (row === undefined || row.deletedAt !== null) return unusable;
      const user = readUser(row.doc);
      const account = principalOf(user, scopes);
      if (account === undefined) return unusable;
      const whole = { ...rest, basis: [...rest.basis, toBasis(usersTable, row)] };
      if (kind !== 'secret') return good(key, itself(key), whole, uses);
      return factorRule(user, good(key, account, whole, uses));
    });
  }

  const expiresAt = Math.min(endsAt, expiryTime(grant.keyExpiresAt));
  const own = { expiresAt, basis, ...appendHosts(tunnel, key, []) };
  return whenKnown(withMakers(store, grant.madeBy, own), (rest) =>
    rest === undefined || rest.expiresAt <= clock() ? unusable : standFor(rest),
  );
}

type Rest = Pick<Good, 'expiresAt' | 'basis' | 'makers' | 'hosts'>;

/** Adds what rests on the keys that created this one; undefined if one of them was revoked. */
function withMakers(
  store: Pick<Store, 'read'>,
  maker: string | null,
  rest: Rest,
): MaybePromise<Rest | undefined> {
  if (maker === null) return rest;
  return whenKnown(store.read(keysTable, maker), (row) => {
    if (row === undefined) return undefined;
    const { madeBy = null, expiresAt = null, tunnel } = JSON.parse(row.doc) as Key;
    return withMakers(store, madeBy, {
      expiresAt: Math.min(rest.expiresAt, expiryTime(expiresAt)),
      basis: [...rest.basis, toBasis(keysTable, row)],
      makers: [...(rest.makers ?? []), maker],
      ...appendHosts(tunnel, maker, rest.hosts ?? []),
    });
  });
}

function appendHosts(
  tunnel: KeyTunnel | undefined,
  key: string,
  others: readonly HostRules[],
): Pick<Rest, 'hosts'> {
  if (tunnel === undefined) return others.length === 0 ? {} : { hosts: others };
  const { mode, allow = null, deny } = tunnel;
  return { hosts: [...others, { mode, allow, deny, name: `the list of ${key}` }] };
}

/** Reads a stored administrator key from the store, because another process may have changed it just now. */
function judgeAdminKey(store: Store, isKept: boolean, digest: Uint8Array): MaybePromise<Verdict> {
  const admitted = {
    principal: administrator,
    scheme: 'key',
    session: null,
    key: null,
    expiresAt: Number.POSITIVE_INFINITY,
    basis: [],
  } as const;
  if (!isKept) return admitted;
  return whenKnown(store.read(secretsTable, adminKeyRowId), (row) =>
    row !== undefined && timingSafeEqual(digest, adminKeyHashOf(row))
      ? { ...admitted, basis: [toBasis(secretsTable, row)] }
      : unusable,
  );
}

/** The row of the key determines which uses are written, so `uses` judges them. */
function good(key: string, principal: Authenticated, rest: Rest, uses: KeyJudgement['uses']): Good {
  let notedAt = Number.NEGATIVE_INFINITY;
  return {
    principal,
    scheme: 'key',
    session: null,
    key,
    ...rest,
    onUse: (nowMs) => {
      if (nowMs - notedAt < uses.intervalMs) return;
      notedAt = nowMs;
      uses.note(key, nowMs);
    },
  };
}

function expiryTime(expiresAt: string | null): number {
  return expiresAt === null ? Number.POSITIVE_INFINITY : Date.parse(expiresAt);
}

function toBasis(table: string, row: Row): Basis {
  return { table, id: row.id, rev: row.rev };
}

// Records when keys were last used (`lastUsedAt`), outside of requests: uses are queued in memory, at most one for each key, and
// written a second later, some hundred in one unit. A crash loses the queue. The time is part of the served row, so that lists show and
// sort by it. Each key's is written at most once in `keyUseSeconds` by all processes together, because every write changes the key's
// entity tag; no verdict rests on that row. `updatedAt` does not change. A use whose write loses a race waits for the next unit.

export type KeyUses = {
  /** Minimum time between two writes for one key. */
  readonly intervalMs: number;
  note(key: string, atMs: number): void;
  close(): Promise<void>;
};

/** Keys whose use may be queued; further ones are recorded at a later use. */
const waitingMax = memoryBounds.keyUses.entries;
/** Rows in one unit, and so the maximum a second. */
const rowsPerUnitMax = 250;

export function createKeyUses({ store, observe, settings }: Services, delayMs = 1000): KeyUses {
  const intervalMs = settings.keyUseSeconds * 1000;
  const waiting = new Map<string, number>();
  let timer: NodeJS.Timeout | undefined;
  let writing: Promise<void> = Promise.resolve();
  let isClosed = false;

  async function changeOf([id, atMs]: readonly [string, number]): Promise<Change | undefined> {
    const row = await store.read(keysTable, id);
    return row === undefined ? undefined : useChange(row, atMs, intervalMs);
  }

  async function write(): Promise<void> {
    const uses = [...waiting].slice(0, rowsPerUnitMax);
    for (const [id] of uses) waiting.delete(id);
    let changes = (await Promise.all(uses.map(changeOf))).filter((change) => change !== undefined);
    while (changes.length > 0) {
      const commit = await store.commit({ changes, events: [] });
      if (commit.outcome === 'committed') return;
      const lost = changes[commit.change];
      changes = changes.filter((change) => change !== lost);
      for (const [id, atMs] of uses) if (id === lost?.id && !waiting.has(id)) waiting.set(id, atMs);
    }
  }

  function begin(): Promise<void> {
    timer = undefined;
    writing = writing
      .then(write)
      .catch((error) => observe({ kind: 'store-failed', what: 'key uses', error }))
      .then(() => schedule());
    return writing;
  }

  function schedule(): void {
    if (waiting.size === 0 || timer !== undefined || isClosed) return;
    timer = setTimeout(begin, delayMs);
    timer.unref();
  }

  return {
    intervalMs,
    note(key, atMs) {
      if (isClosed || (waiting.size >= waitingMax && !waiting.has(key))) return;
      waiting.set(key, atMs);
      schedule();
    },
    async close() {
      isClosed = true;
      clearTimeout(timer);
      await writing;
      while (waiting.size > 0) await begin();
    },
  };
}

/** Returns undefined if another process recorded a use at about the same time. */
function useChange(row: Row, atMs: number, intervalMs: number): Change | undefined {
  const { createdAt, updatedAt, ...fields } = JSON.parse(row.doc) as Key;
  if (fields.lastUsedAt !== undefined && atMs - Date.parse(fields.lastUsedAt) < intervalMs) return undefined;
  const used = { ...fields, lastUsedAt: new Date(atMs).toISOString() };
  const next = {
    doc: JSON.stringify({ ...used, createdAt, updatedAt }),
    owner: row.owner,
    createdAt: row.createdAt,
    updatedAt: row.updatedAt,
    deletedAt: null,
    search: searchText(keysCollection.searchFields, used),
    references: [],
  };
  return { table: keysTable, id: row.id, expect: { rev: row.rev }, next };
}

/**
 * API keys to verdicts (§5.2). The administrator key outranks all others and is compared in constant time; any other is found by its
 * digest, so that the cost does not grow with the number of keys: one read by id, and one of its account where it has one.
 *
 * A secret key of an account stands for that account, within the key's scopes and those that the account has now. One that was made with
 * the administrator key is a principal of its own, and so is every publishable key, which stands in public pages: it may read what
 * anyone with a credential may, and nothing of its owner's. A key that was made with a key is good while that one is, so that revoking
 * a stolen key revokes what the thief made with it; and it tunnels to no host that the list of that one refuses (§4.10).
 */
import { timingSafeEqual } from 'node:crypto';
import type { HostRules } from '../../model/host-rules.ts';
import { type Authenticated, authenticated, type Scope } from '../../model/principal.ts';
import type { MaybePromise, Row, Store } from '../../store/store.ts';
import { whenKnown } from '../../store/when-known.ts';
import { administrator, adminKeyHashOf, adminKeyRowId, secretsTable } from '../admin-key.ts';
import { principalOf } from '../sessions/user-principal.ts';
import { keySecretsTable, keysTable, readUser, usersTable } from '../tables.ts';
import type { Bad, Basis, Good, Verdict } from '../verdict.ts';
import type { Key, KeyGrant, KeySecret, KeyTunnel } from './key-rows.ts';
import { digestOfKey, type KeyKind, kindOfKey } from './key-text.ts';
import type { KeyUses } from './key-uses.ts';

export type KeyVerifierOptions = {
  readonly store: Pick<Store, 'read'>;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
  /** SHA-256 of the administrator key as this process knows it. */
  readonly adminKeyHash: () => Uint8Array;
  /** Whether that key lies in the store, where another process may change it, and not in COMITY_ADMIN_KEY. */
  readonly adminKeyKept: boolean;
  readonly uses: Pick<KeyUses, 'note' | 'intervalMs'>;
};

/** The prefix of the ids of accounts: whether the owner of a key is one. */
const userIdPrefix = 'usr_';
const publishableScopes: ReadonlySet<Scope> = new Set(['read']);
const unusable: Bad = { problem: 'invalid_api_key' };

/** @returns what `Verifiers.key` is: at once where the store answers at once */
export function createKeyVerifier(options: KeyVerifierOptions): (key: string) => MaybePromise<Verdict> {
  const { store } = options;

  function judge(kind: KeyKind, row: Row): MaybePromise<Verdict> {
    const secret = JSON.parse(row.doc) as KeySecret;
    if (secret.kind !== kind) return unusable;
    return judgeGrant(options, secret, endOf(secret.expiresAt), [basisOf(keySecretsTable, row)]);
  }

  return (text) => {
    const digest = digestOfKey(text);
    if (timingSafeEqual(digest, options.adminKeyHash())) return judgeAdminKey(options, digest);
    const kind = kindOfKey(text);
    if (kind === undefined) return unusable;
    return whenKnown(store.read(keySecretsTable, digest.toString('base64url')), (row) =>
      row === undefined ? unusable : judge(kind, row),
    );
  };
}

/**
 * Whom a key stands for now, and until when.
 * @param endsAt when the text that was used ends, in milliseconds since the epoch
 */
export function judgeGrant(
  options: Pick<KeyVerifierOptions, 'store' | 'clock' | 'uses'>,
  grant: KeyGrant,
  endsAt: number,
  basis: readonly Basis[],
): MaybePromise<Verdict> {
  const { store, clock, uses } = options;
  const { key, kind, owner, tunnel } = grant;
  const scopes =
    kind === 'secret' ? grant.scopes : grant.scopes.filter((each) => publishableScopes.has(each));
  const itself = (id: string) => authenticated({ id, scopes });

  function standFor(rest: Rest): MaybePromise<Verdict> {
    if (!owner.startsWith(userIdPrefix)) {
      return good(key, itself(kind === 'secret' ? owner : key), rest, uses);
    }
    return whenKnown(store.read(usersTable, owner), (row) => {
      if (row === undefined || row.deletedAt !== null) return unusable;
      const account = principalOf(readUser(row.doc), scopes);
      if (account === undefined) return unusable;
      const principal = kind === 'secret' ? account : itself(key);
      return good(key, principal, { ...rest, basis: [...rest.basis, basisOf(usersTable, row)] }, uses);
    });
  }

  const expiresAt = Math.min(endsAt, endOf(grant.keyExpiresAt));
  const own = { expiresAt, basis, ...hostsOf(tunnel, key, []) };
  return whenKnown(withMakers(store, grant.madeBy, own), (rest) =>
    rest === undefined || rest.expiresAt <= clock() ? unusable : standFor(rest),
  );
}

/** What is known of a key besides whom it stands for. */
type Rest = Pick<Good, 'expiresAt' | 'basis' | 'makers' | 'hosts'>;

/** What the keys vouch for that a key was made with, one by the other; undefined: one of them was revoked. */
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
      expiresAt: Math.min(rest.expiresAt, endOf(expiresAt)),
      basis: [...rest.basis, basisOf(keysTable, row)],
      makers: [...(rest.makers ?? []), maker],
      ...hostsOf(tunnel, maker, rest.hosts ?? []),
    });
  });
}

/** The lists so far and that of one key more; nothing where there is none. */
function hostsOf(
  tunnel: KeyTunnel | undefined,
  key: string,
  others: readonly HostRules[],
): Pick<Rest, 'hosts'> {
  if (tunnel === undefined) return others.length === 0 ? {} : { hosts: others };
  const { mode, allow = null, deny } = tunnel;
  return { hosts: [...others, { mode, allow, deny, name: `the list of ${key}` }] };
}

/** One that lies in the store is looked at there: this process may not know yet that another has changed it. */
function judgeAdminKey(
  { store, adminKeyKept }: KeyVerifierOptions,
  digest: Uint8Array,
): MaybePromise<Verdict> {
  const admitted = {
    principal: administrator,
    scheme: 'key',
    session: null,
    key: null,
    expiresAt: Number.POSITIVE_INFINITY,
    basis: [],
  } as const;
  if (!adminKeyKept) return admitted;
  return whenKnown(store.read(secretsTable, adminKeyRowId), (row) =>
    row !== undefined && timingSafeEqual(digest, adminKeyHashOf(row))
      ? { ...admitted, basis: [basisOf(secretsTable, row)] }
      : unusable,
  );
}

/** Whether a use that is noted is worth writing, only the row of the key can tell. */
function good(key: string, principal: Authenticated, rest: Rest, uses: KeyVerifierOptions['uses']): Good {
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

/** Milliseconds since the epoch; the first of them at which it is over. */
function endOf(expiresAt: string | null): number {
  return expiresAt === null ? Number.POSITIVE_INFINITY : Date.parse(expiresAt);
}

function basisOf(table: string, row: Row): Basis {
  return { table, id: row.id, rev: row.rev };
}

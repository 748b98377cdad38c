/**
 * The rights of a new or changed key. A caller can only grant what it has: no scope that it lacks and, if it uses a key itself, no
 * later expiry than that key's. A publishable key only reads. Host rules need no check: the verifier applies those of the maker to the
 * new key as well.
 */
import { canonicalHostGlob, hostGlobMeaning } from '../../config/tunnel.ts';
import type { FieldError } from '../../http/problem.ts';
import type { Known, Scope } from '../../model/principal.ts';
import type { Revise } from '../../resources/collection/write-operations.ts';
import type { MaybePromise, Row, Store } from '../../store/store.ts';
import { keysTable } from '../account-tables.ts';
import type { Key, KeyKind, KeyTunnel } from './key-rows.ts';

export type Wanted = {
  readonly kind: KeyKind;
  readonly scopes?: readonly Scope[];
  readonly tunnel?: Partial<KeyTunnel>;
  readonly expiresAt?: string;
};

export type Granted =
  | {
      readonly ok: true;
      readonly scopes: readonly Scope[];
      readonly tunnel?: KeyTunnel;
      readonly expiresAt: number | undefined;
    }
  | { readonly ok: false; readonly errors: readonly FieldError[] };

const defaultScopes: Readonly<Record<KeyKind, readonly Scope[]>> = {
  secret: ['read', 'write'],
  publishable: ['read'],
};

/** @param nowMs milliseconds since the epoch */
export async function grantKey(
  store: Pick<Store, 'read'>,
  known: Known,
  wanted: Wanted,
  nowMs: number,
): Promise<Granted> {
  const own = known.principal.scopes;
  const scopes = wanted.scopes ?? defaultScopes[wanted.kind].filter((scope) => own.has(scope));
  const errors = [...scopeErrors(wanted.kind, scopes, own)];
  if ((await countMakers(store, known.key)) >= makersMax) {
    errors.push({
      pointer: '',
      message: `cannot be created with this key: at most ${makersMax} keys may create one another in a chain`,
    });
  }
  const tunnel = wanted.tunnel === undefined ? undefined : readTunnel(wanted.tunnel, scopes, errors);
  const latest = await makerExpiry(store, known);
  const expiry = expiryOf(wanted.expiresAt, nowMs, latest);
  if ('error' in expiry) errors.push(expiry.error);
  if (errors.length > 0 || 'error' in expiry) return { ok: false, errors };
  return { ok: true, scopes, ...(tunnel === undefined ? {} : { tunnel }), expiresAt: expiry.endsAt };
}

function scopeErrors(
  kind: KeyKind,
  scopes: readonly Scope[],
  own: ReadonlySet<Scope>,
): readonly FieldError[] {
  if (kind === 'publishable' && scopes.some((scope) => scope !== 'read')) {
    return [{ pointer: '/scopes', message: 'must be only "read" for a publishable key' }];
  }
  const lacking = scopes.filter((scope) => !own.has(scope));
  if (lacking.length === 0) return [];
  return [{ pointer: '/scopes', message: `must be scopes of the caller, which lacks ${lacking.join(', ')}` }];
}

/** Normalizes globs to the spelling in which hosts are compared. */
function readTunnel(
  { mode = 'enforce', allow, deny = [] }: Partial<KeyTunnel>,
  scopes: readonly Scope[],
  errors: FieldError[],
): KeyTunnel {
  if (!scopes.includes('tunnel')) {
    errors.push({ pointer: '/tunnel', message: 'requires the scope "tunnel"' });
  }
  const canonical = (globs: readonly string[], member: string): readonly string[] =>
    globs.map((glob, at) => {
      const text = canonicalHostGlob(glob);
      if (text !== undefined) return text;
      errors.push({ pointer: `/tunnel/${member}/${at}`, message: `must be ${hostGlobMeaning}` });
      return glob;
    });
  const denied = canonical(deny, 'deny');
  return allow === undefined
    ? { mode, deny: denied }
    : { mode, allow: canonical(allow, 'allow'), deny: denied };
}

/** Longest chain of keys that created each other; verifying the last reads all of them. */
const makersMax = 8;

async function countMakers(store: Pick<Store, 'read'>, key: string | null): Promise<number> {
  let count = 0;
  for (let maker = key; maker !== null && count < makersMax; count += 1) {
    const row: Row | undefined = await store.read(keysTable, maker);
    maker = row === undefined ? null : ((JSON.parse(row.doc) as Key).madeBy ?? null);
  }
  return count;
}

/** Returns the expiry of the caller's key (ms); undefined without a key or an expiry. */
export async function makerExpiry(store: Pick<Store, 'read'>, known: Known): Promise<number | undefined> {
  const row: MaybePromise<Row | undefined> =
    known.key === null ? undefined : store.read(keysTable, known.key);
  const found = await row;
  if (found === undefined) return undefined;
  const { expiresAt } = JSON.parse(found.doc) as Key;
  return expiresAt === undefined ? undefined : Date.parse(expiresAt);
}

/**
 * Checks the requested expiry: in the future and not after `latest`, which is also the default.
 * @param wanted a date-time
 * @param latest milliseconds since the epoch, like `nowMs` and the result
 */
export function expiryOf(
  wanted: string | undefined,
  nowMs: number,
  latest: number | undefined,
): { readonly endsAt: number | undefined } | { readonly error: FieldError } {
  if (wanted === undefined) return { endsAt: latest };
  const pointer = '/expiresAt';
  const endsAt = Date.parse(wanted);
  if (Number.isNaN(endsAt)) return { error: { pointer, message: 'must be an ISO 8601 date and time' } };
  if (endsAt <= nowMs) return { error: { pointer, message: 'must be in the future' } };
  if (latest !== undefined && endsAt > latest) {
    return {
      error: {
        pointer,
        message: `must not be after ${new Date(latest).toISOString()}, when the key of this request ends`,
      },
    };
  }
  return { endsAt };
}

/** True if the other key has more rights, or a later expiry, than the caller's, which then must not learn its text. */
export async function exceeds(store: Pick<Store, 'read'>, known: Known, other: Key): Promise<boolean> {
  if (known.key === null || known.key === other.id) return false;
  if (other.scopes.some((scope) => !known.principal.scopes.has(scope))) return true;
  if (await tunnelsFurther(store, known, known.key, other)) return true;
  const latest = await makerExpiry(store, known);
  return latest !== undefined && (other.expiresAt === undefined || Date.parse(other.expiresAt) > latest);
}

/** True if the caller's key has host rules that do not apply to the other; they apply only to keys created from it. */
async function tunnelsFurther(
  store: Pick<Store, 'read'>,
  known: Known,
  key: string,
  other: Key,
): Promise<boolean> {
  if (known.hosts === undefined || !other.scopes.some((scope) => scope === 'tunnel' || scope === 'admin')) {
    return false;
  }
  let maker = other.madeBy ?? null;
  for (let count = 0; maker !== null && maker !== key && count < makersMax; count += 1) {
    const row: Row | undefined = await store.read(keysTable, maker);
    maker = row === undefined ? null : ((JSON.parse(row.doc) as Key).madeBy ?? null);
  }
  return maker !== key;
}

/**
 * A change of when a key ends: it must lie ahead, and a key gives no key a longer life than its own.
 *
 * A patch that leaves the time as it stands is not asked for a better one.
 */
export function reviseExpiry(store: Store, clock: () => number): Revise {
  return async ({ ask, before, fields }) => {
    const stood = before === undefined ? undefined : (JSON.parse(before.doc) as Key).expiresAt;
    const wanted = fields.expiresAt as string | undefined;
    if (wanted === stood) return { fields };
    const latest = ask.known === undefined ? undefined : await makerExpiry(store, ask.known);
    const expiry = expiryOf(wanted, clock(), latest);
    if ('error' in expiry) return { refused: { code: 'validation_failed', errors: [expiry.error] } };
    if (expiry.endsAt === undefined) return { fields };
    return { fields: { ...fields, expiresAt: new Date(expiry.endsAt).toISOString() } };
  };
}

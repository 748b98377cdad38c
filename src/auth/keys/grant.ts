/**
 * What a new or changed key may hold at most. Whoever makes a key gives of his own: no scope that he lacks, and where he came by a key
 * himself, no longer life than that key has. A publishable key reads, and nothing else. A list of hosts is no gift and needs no measure: that
 * of the maker holds for the new key as well (verifier.ts).
 */
import { canonicalHostGlob, hostGlobMeaning } from '../../config/host-rules.ts';
import type { FieldError } from '../../http/problem.ts';
import type { Known } from '../../model/credential.ts';
import type { Scope } from '../../model/principal.ts';
import type { MaybePromise, Row, Store } from '../../store/store.ts';
import { keysTable } from '../tables.ts';
import type { Key, KeyTunnel } from './key-rows.ts';
import type { KeyKind } from './key-text.ts';

/** What is asked for, as the schema of keys lets it through. */
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
  if ((await makersOf(store, known.key)) >= makersMax) {
    errors.push({ pointer: '', message: `comes of ${makersMax} keys that were made with each other` });
  }
  const tunnel = wanted.tunnel === undefined ? undefined : tunnelOf(wanted.tunnel, scopes, errors);
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
    return [{ pointer: '/scopes', message: 'of a publishable key can only be read' }];
  }
  const lacking = scopes.filter((scope) => !own.has(scope));
  if (lacking.length === 0) return [];
  return [{ pointer: '/scopes', message: `go beyond those of the caller: ${lacking.join(', ')}` }];
}

/** The list as it is kept: globs in the spelling that hosts are compared in. */
function tunnelOf(
  { mode = 'enforce', allow, deny = [] }: Partial<KeyTunnel>,
  scopes: readonly Scope[],
  errors: FieldError[],
): KeyTunnel {
  if (!scopes.includes('tunnel')) {
    errors.push({ pointer: '/tunnel', message: 'goes with the scope tunnel alone' });
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

/** Keys that were made one with the other; verifying the last of them reads them all. */
const makersMax = 8;

async function makersOf(store: Pick<Store, 'read'>, key: string | null): Promise<number> {
  let count = 0;
  for (let maker = key; maker !== null && count < makersMax; count += 1) {
    const row: Row | undefined = await store.read(keysTable, maker);
    maker = row === undefined ? null : ((JSON.parse(row.doc) as Key).madeBy ?? null);
  }
  return count;
}

/** When the key that the caller came by ends (ms); undefined: he came by another credential, or it has no end. */
export async function makerExpiry(store: Pick<Store, 'read'>, known: Known): Promise<number | undefined> {
  const row: MaybePromise<Row | undefined> =
    known.key === null ? undefined : store.read(keysTable, known.key);
  const found = await row;
  if (found === undefined) return undefined;
  const { expiresAt } = JSON.parse(found.doc) as Key;
  return expiresAt === undefined ? undefined : Date.parse(expiresAt);
}

/**
 * When a key shall end, as it may: in the future, and not after `latest`, which counts where nothing is asked for.
 * @param wanted a date-time @param latest milliseconds since the epoch, as are `nowMs` and the result
 */
export function expiryOf(
  wanted: string | undefined,
  nowMs: number,
  latest: number | undefined,
): { readonly endsAt: number | undefined } | { readonly error: FieldError } {
  if (wanted === undefined) return { endsAt: latest };
  const pointer = '/expiresAt';
  const endsAt = Date.parse(wanted);
  if (Number.isNaN(endsAt)) return { error: { pointer, message: 'must be a date-time' } };
  if (endsAt <= nowMs) return { error: { pointer, message: 'must lie in the future' } };
  if (latest !== undefined && endsAt > latest) {
    return { error: { pointer, message: 'must not be after the end of the key that asks for it' } };
  }
  return { endsAt };
}

/** Whether the caller came by a key that may do less, or ends earlier, than the other: it must not be given that one's text. */
export async function exceeds(store: Pick<Store, 'read'>, known: Known, other: Key): Promise<boolean> {
  if (known.key === null || known.key === other.id) return false;
  if (other.scopes.some((scope) => !known.principal.scopes.has(scope))) return true;
  if (await tunnelsFurther(store, known, known.key, other)) return true;
  const latest = await makerExpiry(store, known);
  return latest !== undefined && (other.expiresAt === undefined || Date.parse(other.expiresAt) > latest);
}

/** Whether lists of hosts hold for the caller's key and not for the other: they do for those alone that come of it. */
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

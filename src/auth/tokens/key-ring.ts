/**
 * When signing keys come and go, as arithmetic over the ring: no store, no clock, no randomness.
 *
 *   published  from the moment it is made, at least a tenth of the period (an hour where that is longer) before it signs, so that who
 *              caches the JWK set has it by then;
 *   signing    from `signsFrom` until the next key's: there is always exactly one;
 *   verifying  on, until every token that it signed is over;
 *   gone       then.
 */
import type { StoredKey } from './signing-key.ts';

export type Ring = {
  /** Of all processes on the store and of no other: who issues tokens where no public URL says so. */
  readonly name: string;
  /** In the order in which they sign. */
  readonly keys: readonly StoredKey[];
};

export type RingTimes = {
  /** Age at which a signing key is replaced. */
  readonly signingKeySeconds: number;
  readonly accessTokenSeconds: number;
};

const hourMs = 3_600_000;
const leadParts = 10;
/** Beyond the lifetime of its last token: for processes whose clocks differ. */
const graceMs = 60_000;

/** How long a key is published before it signs, in milliseconds. */
export function leadMs(signingKeySeconds: number): number {
  const periodMs = signingKeySeconds * 1000;
  return Math.max(periodMs / leadParts, Math.min(hourMs, periodMs / 2));
}

/** The key that signs at this time: the last one whose time has come. The first key signs before its time, if it must. */
export function signingAt<K extends Pick<StoredKey, 'signsFrom'>>(
  keys: readonly K[],
  now: number,
): K | undefined {
  return keys.findLast((key) => key.signsFrom <= now) ?? keys[0];
}

/** When the next key must begin, if it should be made now; undefined: not yet, or it is there. */
export function nextSignsFrom(ring: Ring, times: RingTimes, now: number): number | undefined {
  const last = ring.keys.at(-1);
  if (last === undefined) return now;
  if (last.signsFrom > now) return undefined;
  const lead = leadMs(times.signingKeySeconds);
  const due = last.signsFrom + times.signingKeySeconds * 1000;
  return now >= due - lead ? Math.max(due, now + lead) : undefined;
}

/** The ring without the keys whose tokens are all over. */
export function withoutSpent(ring: Ring, times: RingTimes, now: number): Ring {
  const { keys } = ring;
  const kept = keys.filter((_key, at) => {
    const successor = keys[at + 1];
    return successor === undefined || successor.signsFrom + times.accessTokenSeconds * 1000 + graceMs > now;
  });
  return kept.length === keys.length ? ring : { ...ring, keys: kept };
}

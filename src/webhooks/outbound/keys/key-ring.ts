/**
 * When the keys of `v1a` come and go, as arithmetic over the ring: no store, no clock, no randomness.
 *
 *   published  from the moment it is made, a lead before it signs (a tenth of the period, an hour at least where the period allows it),
 *              so that who caches the JWK set has it by then;
 *   signing    from `signsFrom` until a lead after the next key's, so that for that long each delivery is signed with both, and receivers
 *              that were given a key by hand have time to take the next one;
 *   published  on, for as long as a receiver may look at what it signed last;
 *   gone       then.
 */
import type { StoredKey } from './webhook-key.ts';

/** In the order in which they begin to sign. */
export type Ring = { readonly keys: readonly StoredKey[] };

const hourMs = 3_600_000;
const leadParts = 10;
/** After its last signature: the tolerance of receivers, and processes and receivers whose clocks differ. */
const graceMs = 600_000;

/** How long a key is published before it signs, and how long two sign. Milliseconds. */
export function leadMs(signingKeySeconds: number): number {
  const periodMs = signingKeySeconds * 1000;
  return Math.max(periodMs / leadParts, Math.min(hourMs, periodMs / 2));
}

/** The keys that sign at this time, the current one first. The first key of all signs before its time, if it must. */
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

/** When the next key must begin to sign, if it should be made now; undefined: not yet, or it is there. */
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

/** The keys without those that nobody looks for any more; the same array when there are none. */
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

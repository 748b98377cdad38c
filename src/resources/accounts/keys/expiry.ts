/** A change of when a key ends: it must lie ahead, and a key gives no key a longer life than its own. */
import { expiryOf, makerExpiry } from '../../../auth/keys/grant.ts';
import type { Key } from '../../../auth/keys/key-rows.ts';
import type { Store } from '../../../store/store.ts';
import type { Revise } from '../../collection/revised.ts';

/** A patch that leaves the time as it stands is not asked for a better one. */
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

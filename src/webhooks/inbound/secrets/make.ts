/** The first secret of a sender whose variable is not set. The same text for every scheme: each makes its own key of it (§5.6). */
import type { Store } from '../../../store/store.ts';
import { makeEndpointSecret } from '../../outbound/secret-text.ts';
import type { SecretName } from '../sender-secrets.ts';
import { secretsChange } from './row.ts';

export type MakingSecrets = {
  readonly store: Pick<Store, 'read' | 'commit'>;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
  /** That many octets of good randomness. */
  readonly random: (count: number) => Buffer;
};

/** @returns the secret; undefined where another made one @throws StoreUnavailable */
export async function makeSenderSecret(
  { store, clock, random }: MakingSecrets,
  name: SecretName,
): Promise<string | undefined> {
  const secret = makeEndpointSecret(random);
  const change = secretsChange(name, undefined, [{ secret, until: null }], clock());
  const { outcome } = await store.commit({ changes: [change], events: [] });
  return outcome === 'committed' ? secret : undefined;
}

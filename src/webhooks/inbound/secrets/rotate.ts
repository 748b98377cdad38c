/**
 * A sender gets another secret (§5.6, §6.7): one made here, or one that the sender gave. The others are taken beside it for as long as the
 * sender needs to learn it; one that would have ended sooner still does. What may be rotated is the caller's to know: secrets of the
 * environment are not, and whether the rule can use a given one is said by config/senders/secret-rule.ts.
 */
import { tryCommit } from '../../../store/lines.ts';
import { Overtaken, type Store } from '../../../store/store.ts';
import { rotatedSecrets } from '../../outbound/rotated-secrets.ts';
import { makeEndpointSecret } from '../../outbound/secret-text.ts';
import type { SecretName } from '../sender-secrets.ts';
import { senderSecretsTable } from '../tables.ts';
import type { MakingSecrets } from './make.ts';
import { readSenderSecretsRow, secretsChange, secretsRowId } from './row.ts';

export type Rotation = {
  /** Undefined: one is made. */
  readonly secret?: string | undefined;
  /** How long the others are taken still, in milliseconds; 0: no longer. */
  readonly overlapMs: number;
};

/** Other processes know it as soon as the store tells them, this one after `SenderSecrets.refresh`. @throws StoreUnavailable */
export async function rotateSenderSecret(
  { store, clock, random }: MakingSecrets & { readonly store: Pick<Store, 'lines'> },
  name: SecretName,
  { secret = makeEndpointSecret(random), overlapMs }: Rotation,
): Promise<{ readonly secret: string }> {
  return store.lines.change({ table: senderSecretsTable, id: secretsRowId(name) }, async () => {
    const stood = await readSenderSecretsRow(store, name);
    const at = clock();
    const secrets = rotatedSecrets(stood?.secrets ?? [], secret, at, overlapMs);
    const commit = await tryCommit(store, { changes: [secretsChange(name, stood, secrets, at)], events: [] });
    if (commit instanceof Overtaken) return commit;
    return { secret };
  });
}

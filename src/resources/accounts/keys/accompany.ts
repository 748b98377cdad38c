/**
 * What goes with a change of a key, in one unit: a key that is revoked takes its texts along, so that it is dead from that commit on, one
 * that gets another end tells it to its texts, and the audit trail tells of every change.
 */
import { grantOf, type Key, keySecretChange } from '../../../auth/keys/key-rows.ts';
import { createSecretsOfKey } from '../../../auth/keys/secrets-of-key.ts';
import type { Change, NextRow, Row, Store } from '../../../store/store.ts';
import type { Accompaniment, Written } from '../../collection/served.ts';
import { factOfAsk } from '../fact-of-ask.ts';
import type { KeyResourcesOptions } from './options.ts';

export function accompanyKey(
  {
    audit,
    addressOf,
    generationChanges,
  }: Pick<KeyResourcesOptions, 'audit' | 'addressOf' | 'generationChanges'>,
  store: Store,
): (written: Written) => Promise<Accompaniment> {
  const secrets = createSecretsOfKey(store);

  async function consequences(
    id: string,
    before: Row | undefined,
    next: NextRow | null,
  ): Promise<readonly Change[]> {
    if (next === null) return [...(await secrets.removal(id)), ...generationChanges()];
    const after = JSON.parse(next.doc) as Key;
    const stood = before === undefined ? undefined : (JSON.parse(before.doc) as Key);
    if (stood?.expiresAt === after.expiresAt) return [];
    const grant = grantOf(after, next.owner);
    return (await secrets.find(id)).map(({ digest, expiresAt, row }) => {
      const endsAt = expiresAt === null ? null : Date.parse(expiresAt);
      return keySecretChange(digest, grant, endsAt, { createdAt: row.createdAt, expect: { rev: row.rev } });
    });
  }

  return async ({ ask, id, before, next }) => {
    const type = next === null ? 'key.revoked' : 'key.changed';
    const entry = audit.entry(factOfAsk(ask, addressOf, { type, subject: id }));
    return { changes: [...(await consequences(id, before, next)), entry] };
  };
}

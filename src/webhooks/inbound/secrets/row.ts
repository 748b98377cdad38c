/** The row that keeps the secrets of a sender: where it stands, and what is in it. */
import { keptRow } from '../../../store/kept-row.ts';
import type { Change, Row, Store } from '../../../store/store.ts';
import type { SecretName, SenderSecret } from '../sender-secrets.ts';
import { type SenderSecretsRow, senderSecretsTable } from '../tables.ts';

/** A name of a sender holds no slash. */
export function secretsRowId({ sender, use }: SecretName): string {
  return use === 'receive' ? sender : `${sender}/forward`;
}

export type KeptSecrets = Pick<Row, 'rev' | 'createdAt' | 'updatedAt'> & SenderSecretsRow;

/** Undefined where none were made yet. */
export async function readSenderSecretsRow(
  store: Pick<Store, 'read'>,
  name: SecretName,
): Promise<KeptSecrets | undefined> {
  const row = await store.read(senderSecretsTable, secretsRowId(name));
  if (row === undefined) return undefined;
  const { secrets } = JSON.parse(row.doc) as SenderSecretsRow;
  return { secrets, rev: row.rev, createdAt: row.createdAt, updatedAt: row.updatedAt };
}

/** @param stood what was read; undefined: there was none @param at milliseconds since the epoch */
export function secretsChange(
  name: SecretName,
  stood: KeptSecrets | undefined,
  secrets: readonly SenderSecret[],
  at: number,
): Change {
  const updatedAt = Math.max(at, stood?.updatedAt ?? 0);
  return {
    table: senderSecretsTable,
    id: secretsRowId(name),
    expect: stood === undefined ? { absent: true } : { rev: stood.rev },
    next: keptRow(JSON.stringify({ secrets }), null, stood?.createdAt ?? at, updatedAt),
  };
}

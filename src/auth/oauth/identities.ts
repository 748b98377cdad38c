/**
 * Which account an identity at a provider belongs to. The row is found by a digest of issuer and subject, and says whether somebody had
 * proven to own the account's address when it was linked (docs/decisions/0023-account-linking.md).
 */
import { hash } from 'node:crypto';
import { keptRow } from '../../store/kept-row.ts';
import type { Change, Row } from '../../store/store.ts';
import { identitiesTable } from '../tables.ts';
import type { ProviderIdentity } from './provider-identity.ts';

export type Identity = {
  readonly user: string;
  /** Name of the provider by which it came last. */
  readonly provider: string;
  /**
   * The account's address was verified when the identity was linked, or the provider asserted that very address: whoever signs in by it
   * is the owner of the address, or was let in by the owner.
   */
  readonly proven: boolean;
};

export function identityId({ issuer, subject }: ProviderIdentity): string {
  return hash('sha256', JSON.stringify([issuer, subject]), 'base64url');
}

export function readIdentity(row: Row): Identity {
  return JSON.parse(row.doc) as Identity;
}

/** @param before undefined: it belonged to nobody @param at milliseconds since the epoch */
export function identityChange(id: string, before: Row | undefined, identity: Identity, at: number): Change {
  return {
    table: identitiesTable,
    id,
    expect: before === undefined ? { absent: true } : { rev: before.rev },
    next: keptRow(JSON.stringify(identity), identity.user, before?.createdAt ?? at, at),
  };
}

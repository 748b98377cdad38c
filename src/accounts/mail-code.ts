/**
 * Mailed codes: 256 random bits, stored as a digest, valid for one purpose, account, address, use and period (§5.4). The unit that a
 * code enables removes it and all others of its purpose; a reset removes those of every purpose.
 */
import { ownerField } from '../model/field.ts';
import { byId } from '../model/filter.ts';
import { keptRow } from '../store/kept-row.ts';
import type { Change, Row, Store } from '../store/store.ts';
import { mailCodesTable, type User } from './account-tables.ts';
import { digestOf } from './digest.ts';

export type MailCodePurpose = 'verification' | 'reset';

/** `id` repeats the row's id, which pages of documents do not hold. */
type MailCodeRow = {
  readonly id: string;
  readonly purpose: MailCodePurpose;
  /** The address of the mail; the code proves nothing about a later address of the account. */
  readonly email: string;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
};

export type FoundCode = { readonly userId: string; readonly email: string; readonly removal: Change };

const codeOctets = 32;
/** 32 octets in base64url. */
const codeCharacters = 43;
/** Codes read for one account; the limit on mails keeps them far below. */
const codesMax = 1000;

export type MintedCode = { readonly code: string; readonly change: Change };

/** @param how.at milliseconds since the epoch */
export function mintCode(
  user: Pick<User, 'id' | 'email'>,
  purpose: MailCodePurpose,
  how: { readonly at: number; readonly seconds: number; readonly random: (count: number) => Buffer },
): MintedCode {
  const code = how.random(codeOctets).toString('base64url');
  const id = digestOf(code);
  const doc: MailCodeRow = { id, purpose, email: user.email, expiresAt: how.at + how.seconds * 1000 };
  const next = keptRow(JSON.stringify(doc), user.id, how.at, how.at);
  return { code, change: { table: mailCodesTable, id, expect: { absent: true }, next } };
}

/** Returns undefined for a code that is unknown, used, expired or of another purpose. @param now milliseconds since the epoch */
export async function findCode(
  store: Pick<Store, 'read'>,
  code: string,
  purpose: MailCodePurpose,
  now: number,
): Promise<FoundCode | undefined> {
  if (code.length !== codeCharacters) return undefined;
  const row = await store.read(mailCodesTable, digestOf(code));
  if (row === undefined || row.owner === null) return undefined;
  const found = JSON.parse(row.doc) as MailCodeRow;
  if (found.purpose !== purpose || found.expiresAt <= now) return undefined;
  return { userId: row.owner, email: found.email, removal: removeRow(row) };
}

/** Returns changes that remove the account's codes of a purpose, or of all, except one that the caller removes. */
export async function removeCodes(
  store: Pick<Store, 'plan' | 'read'>,
  userId: string,
  purpose: MailCodePurpose | 'all',
  except: string | null,
): Promise<readonly Change[]> {
  const { docs } = await store.plan(queryCodes(userId)).page({ from: 'start' });
  const codes = docs.map((doc) => JSON.parse(doc) as MailCodeRow);
  const others = codes.filter(
    (code) => (purpose === 'all' || code.purpose === purpose) && code.id !== except,
  );
  const rows = await Promise.all(others.map(({ id }) => store.read(mailCodesTable, id)));
  return rows.flatMap((row) => (row === undefined ? [] : [removeRow(row)]));
}

function queryCodes(userId: string) {
  const filter = { op: 'eq', field: ownerField, value: userId } as const;
  return { table: mailCodesTable, filter, sort: byId, limit: codesMax };
}

function removeRow(row: Row): Change {
  return { table: mailCodesTable, id: row.id, expect: { rev: row.rev }, next: null };
}

/** The row of an account's password hash. */
import { type Change, keptRow, type MaybePromise, type Row, type Store } from '../../store/store.ts';
import { type PasswordRow, passwordsTable } from '../account-tables.ts';

export type StoredPassword = PasswordRow & { readonly row: Row };

export function readPassword(
  store: Pick<Store, 'read'>,
  userId: string,
): MaybePromise<StoredPassword | undefined> {
  const row = store.read(passwordsTable, userId);
  return row instanceof Promise ? row.then(stored) : stored(row);
}

function stored(row: Row | undefined): StoredPassword | undefined {
  return row === undefined ? undefined : { ...(JSON.parse(row.doc) as PasswordRow), row };
}

/** @param before undefined if the account has no such row yet @param at milliseconds since the epoch */
export function passwordChange(
  userId: string,
  before: StoredPassword | undefined,
  hash: string | null,
  at: number,
): Change {
  const changedAt =
    before !== undefined && before.hash === hash ? before.changedAt : new Date(at).toISOString();
  const doc: PasswordRow = { hash, changedAt };
  return {
    table: passwordsTable,
    id: userId,
    expect: before === undefined ? { absent: true } : { rev: before.row.rev },
    next: keptRow(JSON.stringify(doc), userId, before?.row.createdAt ?? at, at),
  };
}

/** Finds an account and its row, by id or address. */
import type { Field } from '../../model/field.ts';
import { byId } from '../../model/filter.ts';
import type { MaybePromise, Row, Store } from '../../store/store.ts';
import { readUser, type User, usersTable } from '../account-tables.ts';

export type FoundUser = { readonly user: User; readonly row: Row };

export type FindUser = {
  byId(id: string): MaybePromise<FoundUser | undefined>;
  /** @param email in the form of `normalizeEmail` */
  byEmail(email: string): MaybePromise<FoundUser | undefined>;
};

/** No account has this id. */
export const nobodyId = 'usr_';

const emailField: Field = { name: 'email', path: ['email'], type: 'string' };
export function createFindUser(store: Pick<Store, 'plan' | 'read'>): FindUser {
  function read(id: string): MaybePromise<FoundUser | undefined> {
    const row = store.read(usersTable, id);
    return row instanceof Promise ? row.then(found) : found(row);
  }

  /** Between the two reads the address may move to another account. */
  async function byEmail(email: string): Promise<FoundUser | undefined> {
    const plan = store.plan({
      table: usersTable,
      filter: { op: 'eq', field: emailField, value: email },
      sort: byId,
      limit: 1,
    });
    const { docs } = await plan.page({ from: 'start' });
    const [doc] = docs;
    // An unknown address costs the same reads as a known one.
    const user = await read(doc === undefined ? nobodyId : readUser(doc).id);
    return user?.user.email === email ? user : undefined;
  }

  return { byId: read, byEmail };
}

function found(row: Row | undefined): FoundUser | undefined {
  return row === undefined || row.deletedAt !== null ? undefined : { user: readUser(row.doc), row };
}

/**
 * Changes of accounts by an application's functions (§5.7.9): the fields of the application and the name, by the rules of the collection.
 * What belongs to Comity (the address, roles, scopes, the tenant, `disabled`) has checks and consequences in the requests that change it,
 * so a function may not reach it, not even by a hook of accounts.
 */
import type { Problem } from '../../http/problem.ts';
import type { Cause } from '../../model/actor.ts';
import type { Accompaniment, Written } from '../../resources/collection/served.ts';
import type { Change, NextRow, Row } from '../../store/store.ts';
import type { AccountParts, EndpointGeneration } from '../account-parts.ts';
import { changedFields, fieldsOfUser, readUser, type User } from '../account-tables.ts';

export type FunctionWrites = {
  readonly judge: (written: Written) => Accompaniment;
  readonly consequences: (writes: readonly AccountWrite[], cause: Cause) => readonly Change[];
};

type AccountWrite = {
  readonly id: string;
  readonly before: Row | undefined;
  readonly next: NextRow | null;
};

export function createFunctionWrites(
  { audit, accounts, settings }: AccountParts,
  { generationChanges }: EndpointGeneration,
): FunctionWrites {
  const { accountBytesMax } = settings;
  const open = new Set(['name', ...accounts.fieldNames]);

  function refusalOf(before: User, after: User): Problem | undefined {
    const names = new Set([...Object.keys(before), ...Object.keys(after)]);
    const closed = [...names].filter((name) => !open.has(name) && !isSame(before, after, name));
    if (closed.length > 0) {
      const message = 'belongs to Comity: only the requests for accounts change it';
      return { code: 'field_unpatchable', errors: closed.map((name) => ({ pointer: `/${name}`, message })) };
    }
    if (Buffer.byteLength(JSON.stringify(fieldsOfUser(after))) <= accountBytesMax) return undefined;
    const message = `the fields of an account take at most ${accountBytesMax} bytes (COMITY_ACCOUNT_BYTES_MAX)`;
    return { code: 'content_too_large', message };
  }

  return {
    judge({ before, next }) {
      if (before === undefined || next === null) throw new Error('functions only update accounts');
      const refused = refusalOf(readUser(before.doc), readUser(next.doc));
      return refused === undefined ? { changes: [] } : { refused };
    },
    consequences(writes, { actor, requestId }) {
      let isToldOtherwise = false;
      const entries = writes.flatMap(({ id, before, next }) => {
        if (before === undefined || next === null) return [];
        const [stood, after] = [readUser(before.doc), readUser(next.doc)];
        const fields = changedFields(stood, after);
        const members = [...(stood.name === after.name ? [] : ['name']), ...fields];
        if (members.length === 0) return [];
        isToldOtherwise ||= fields.length > 0;
        const { kind, keyId } = actor;
        return audit.entry({
          ...{
            type: 'account.changed',
            actor: actor.id,
            kind,
            subject: id,
            address: null,
            detail: { members },
          },
          ...(keyId === undefined ? {} : { keyId }),
          ...(requestId === undefined ? {} : { requestId }),
        });
      });
      return [...entries, ...(isToldOtherwise ? generationChanges() : [])];
    },
  };
}

function isSame(before: User, after: User, name: string): boolean {
  // Every write changes it.
  if (name === 'updatedAt') return true;
  const member = (user: object): unknown => Object.entries(user).find(([each]) => each === name)?.[1];
  return JSON.stringify(member(before)) === JSON.stringify(member(after));
}

/**
 * Revises a change of an account that a request asks for, before hooks run: its address, and the rights of the caller over the account.
 * Hooks may change what the caller may not.
 */
import type { Problem } from '../../http/problem.ts';

import { normalizeEmail } from '../../mail/email.ts';
import type { Revise } from '../../resources/collection/revised.ts';
import { readUser } from '../account-tables.ts';
import type { Administering } from './administering.ts';

export const beyondRights: Problem = {
  code: 'forbidden',
  message: 'you do not administer this account, or it has or would have rights that you lack',
};

export function reviseUser(administering: Pick<Administering, 'mayChange'>): Revise {
  return async (revision) => {
    const found = await reviseEmail(revision);
    if ('refused' in found) return found;
    const { ask, before } = revision;
    const next = { doc: JSON.stringify(found.fields), owner: before?.owner ?? null };
    return administering.mayChange(ask.principal, { before, next }) ? found : { refused: beyondRights };
  };
}

/**
 * The address is stored in its one spelling, so that it stays unique, and no longer taken for verified once it has changed, unless the
 * same request says so.
 */
const reviseEmail: Revise = ({ before, content, fields }) => {
  const email = normalizeEmail(String(fields.email));
  if (email === undefined) {
    const errors = [{ pointer: '/email', message: 'must be an e-mail address, such as ada@example.com' }];
    return { refused: { code: 'validation_failed', errors } };
  }
  if (before === undefined) return { fields: { ...fields, email } };
  const stood = readUser(before.doc).email;
  if (stood === email || names(content, 'emailVerified')) return { fields: { ...fields, email } };
  return { fields: { ...fields, email, emailVerified: false } };
};

/** Whether the content of a PUT or a PATCH speaks of the member. */
function names(content: unknown, member: string): boolean {
  if (typeof content !== 'object' || content === null) return false;
  if (!('format' in content && 'value' in content)) return Object.hasOwn(content, member);
  const { format, value } = content;
  if (format !== 'json-patch') return names(value, member);
  return (
    Array.isArray(value) &&
    value.some(({ op, path }: { op?: unknown; path?: unknown }) => op !== 'test' && path === `/${member}`)
  );
}

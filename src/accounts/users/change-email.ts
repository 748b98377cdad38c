/**
 * The address of an account as administrators write it: stored in its one spelling, so that it stays unique, and no longer taken
 * for verified once it has changed, unless the same request says so.
 */

import { normalizeEmail } from '../../mail/email.ts';
import type { Revise } from '../../resources/collection/revised.ts';
import { readUser } from '../account-tables.ts';

export const reviseEmail: Revise = ({ before, content, fields }) => {
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

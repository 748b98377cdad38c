/** Subjects of clauses: a member that stands, one that does not exist, and whether two answers show the same state. */
import { type Answer, fieldOf } from '../answer.ts';
import { randomToken } from '../target.ts';
import { CannotApply, type Visit } from '../visit.ts';

/** The path of a member that stands. @throws CannotApply where there is none */
export function memberOf({ survey }: Pick<Visit, 'survey'>): string {
  if (survey.member === undefined) throw new CannotApply('the collection has no member to read');
  return survey.member;
}

/** The path of a member that does not exist, in the form of those that do where one is known. */
export function missingPath({ target, survey }: Pick<Visit, 'target' | 'survey'>): string {
  const id = survey.member?.split('/').at(-1) ?? randomToken();
  const missing = /^\d+$/.test(id) ? '999999999' : id.replace(/[a-z0-9]{4}$/i, (end) => turned(end));
  return `${target.collection.replace(/\/$/, '')}/${missing}`;
}

/** Another text of the same alphabet. */
function turned(text: string): string {
  return text.replace(/[a-z0-9]/gi, (each) => (each === '0' ? '1' : '0'));
}

/** True if both have the same tag, or where there is none the same content. */
export function sameState(one: Answer, other: Answer): boolean {
  const tag = fieldOf(one, 'ETag');
  if (tag !== undefined) return tag === fieldOf(other, 'ETag');
  return one.status === other.status && one.content.equals(other.content);
}

/** True of an answer that says that there is nothing. */
export function isGone({ status }: Answer): boolean {
  return status === 404 || status === 410;
}

/** Answers that refuse a request because of its own mistakes. */
export function isRefusal(status: number): boolean {
  return status >= 400 && status < 500;
}

/** Subjects of clauses: a member that stands, one that does not exist, and whether two answers show the same state. */
import { type Answer, fieldOf } from '../answer.ts';
import { memberPath, randomToken } from '../target.ts';
import { CannotApply, type Visit } from '../visit.ts';

/** The fixed format of dates (RFC 9110 §5.6.7). */
export const imfFixdate =
  /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d{4} \d\d:\d\d:\d\d GMT$/;

/** An origin that no server knows. */
export const strangeOrigin = 'https://conduct.example';

/** The path of a member that stands. @throws CannotApply where there is none */
export function memberOf({ survey }: Pick<Visit, 'survey'>): string {
  if (survey.member === undefined) throw new CannotApply('the collection has no member to read');
  return survey.member;
}

/** The path of a member that does not exist, in the form of those that do where one is known. */
export function missingPath({ target, survey }: Pick<Visit, 'target' | 'survey'>): string {
  const id = survey.member?.split('/').at(-1) ?? randomToken();
  const missing = /^\d+$/.test(id) ? '999999999' : id.replace(/[a-z0-9]{4}$/i, (end) => turned(end));
  return memberPath(target, missing);
}

/** Another text of the same alphabet. */
export function turned(text: string): string {
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

/** The origin that the target allows, or else one that it does not know. */
export function originOf({ target }: Pick<Visit, 'target'>): string {
  return target.origin ?? strangeOrigin;
}

/** The answer to a preflight that permits pages of the origin to read. @throws CannotApply where it does not */
export async function preflight(visit: Visit, method: string, path: string): Promise<Answer> {
  const headers = {
    Origin: originOf(visit),
    'Access-Control-Request-Method': method,
    'Access-Control-Request-Headers': 'authorization, content-type',
  };
  const answer = await visit.send({ method: 'OPTIONS', path, headers, isAnonymous: true });
  if (fieldOf(answer, 'Access-Control-Allow-Origin') === undefined)
    throw new CannotApply('pages of other origins may not read answers');
  return answer;
}

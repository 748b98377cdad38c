/** Errors as problem details (RFC 9457), and what every error needs. */
import { type Answer, fieldOf, isMembers, jsonOf, mediaTypeOf } from '../answer.ts';
import { type Clause, cannotApply, deviates, holds, holdsIf } from '../clause.ts';
import { membersOf } from '../document.ts';
import { CannotApply, type Visit } from '../visit.ts';
import { missingPath } from './subjects.ts';

export const problemClauses: readonly Clause[] = [
  {
    id: 'error-content',
    group: 'problems',
    title: 'An error of a JSON API says in JSON what is wrong',
    section: 'RFC 9110 §15.5',
    level: 'should',
    judge: async (visit) => {
      const answer = await missing(visit);
      if (answer.content.length === 0) return deviates(`the ${answer.status} has no content`);
      return holdsIf(
        /json/.test(mediaTypeOf(answer) ?? ''),
        `the ${answer.status} is ${mediaTypeOf(answer)}`,
      );
    },
  },
  {
    id: 'problem-members',
    group: 'problems',
    title: 'type, title, status, detail and instance of a problem have the types of RFC 9457',
    section: 'RFC 9457 §3.1',
    level: 'must',
    judge: async (visit) => {
      const problem = await problemOf(visit);
      for (const name of ['type', 'title', 'detail', 'instance']) {
        const value = problem.members[name];
        if (value !== undefined && typeof value !== 'string')
          return deviates(`${name} is ${JSON.stringify(value)}`);
      }
      const { status } = problem.members;
      return holdsIf(status === undefined || Number.isInteger(status), `status is ${JSON.stringify(status)}`);
    },
  },
  {
    id: 'problem-status',
    group: 'problems',
    title: 'The status of a problem is that of its answer',
    section: 'RFC 9457 §3.1.2',
    level: 'must',
    judge: async (visit) => {
      const { members, answer } = await problemOf(visit);
      if (members.status === undefined) return cannotApply('the problem has no status');
      return holdsIf(
        members.status === answer.status,
        `the problem says ${members.status}, the answer ${answer.status}`,
      );
    },
  },
  {
    id: 'problem-type',
    group: 'problems',
    title: 'The type of a problem is a URI reference',
    section: 'RFC 9457 §3.1.1',
    level: 'must',
    judge: async (visit) => {
      const { type } = (await problemOf(visit)).members;
      if (type === undefined) return holds;
      const isReference =
        typeof type === 'string' && URL.canParse(type, visit.target.url) && !/\s/.test(type);
      return holdsIf(isReference, `type is ${JSON.stringify(type)}`);
    },
  },
  {
    id: 'validation-content',
    group: 'problems',
    title: 'A document that lacks what it needs is refused with 400 or 422, and words',
    section: 'RFC 9110 §15.5.21',
    level: 'should',
    writes: true,
    judge: async (visit) => {
      if (Object.keys(membersOf(visit.sample())).length === 0)
        return cannotApply('the sample has no members');
      const answer = await visit.send({ method: 'POST', path: visit.target.collection, json: [] });
      if (answer.status < 300)
        return deviates(`an array in place of a document is answered ${answer.status}`);
      if (answer.status >= 500)
        return deviates(`an array in place of a document is answered ${answer.status}`);
      if (![400, 422].includes(answer.status)) return deviates(`it is answered ${answer.status}`);
      return holdsIf(answer.content.length > 0, `the ${answer.status} does not say what is wrong`);
    },
  },
  {
    id: 'error-is-quiet',
    group: 'problems',
    title: 'An error shows no place of the server’s code',
    section: 'RFC 9457 §5',
    level: 'should',
    judge: async (visit) => {
      const { target } = visit;
      const malformed = { 'Content-Type': 'application/json' };
      const answers = [
        await missing(visit),
        await visit.send({ method: 'POST', path: target.collection, content: '{"a":', headers: malformed }),
      ];
      const shown = answers.find(({ content }) =>
        /(?:\n|\\n)\s+at .+:\d+:\d+|node_modules\/|Traceback \(most recent/.test(content.toString()),
      );
      return holdsIf(shown === undefined, `the ${shown?.status} has a stack trace`);
    },
  },
];

function missing(visit: Visit): Promise<Answer> {
  return visit.send({ method: 'GET', path: missingPath(visit), headers: { Accept: 'application/json' } });
}

async function problemOf(
  visit: Visit,
): Promise<{ members: Readonly<Record<string, unknown>>; answer: Answer }> {
  const headers = { Accept: 'application/problem+json, application/json;q=0.5' };
  const answer = await visit.send({ method: 'GET', path: missingPath(visit), headers });
  const members = jsonOf(answer);
  if (mediaTypeOf(answer) !== 'application/problem+json')
    throw new CannotApply(
      `errors are ${fieldOf(answer, 'Content-Type') ?? 'without content'}, not problem details`,
    );
  if (!isMembers(members)) throw new CannotApply('the problem is no JSON object');
  return { members, answer };
}

/** Challenges and credentials (RFC 9110 §11, RFC 6750). */
import { fieldOf, valuesOf } from '../answer.ts';
import { type Clause, cannotApply, deviates, holds, holdsIf, warns } from '../clause.ts';
import { randomToken } from '../target.ts';
import { CannotApply, type Visit } from '../visit.ts';

/** A scheme, and parameters or a token68 (RFC 9110 §11.6.1). */
const challenge =
  /^[!#$%&'*+.^_`|~\w-]+(?: +(?:[\w.~+/-]+=*|[!#$%&'*+.^_`|~\w-]+ *= *(?:"(?:[^"\\]|\\.)*"|[!#$%&'*+.^_`|~\w-]+)))?/;

export const authenticationClauses: readonly Clause[] = [
  {
    id: 'challenge',
    group: 'authentication',
    title: 'A 401 has a challenge in WWW-Authenticate',
    section: 'RFC 9110 §15.5.2',
    level: 'must',
    judge: async (visit) => {
      const answer = await refusedStranger(visit);
      if (answer.status === 403) return warns('a request without credentials is answered 403 instead of 401');
      const [value] = valuesOf(answer, 'WWW-Authenticate');
      if (value === undefined) return deviates('the 401 has no WWW-Authenticate');
      return holdsIf(challenge.test(value), `WWW-Authenticate is ${value}`);
    },
  },
  {
    id: 'credentials-wrong',
    group: 'authentication',
    title: 'Credentials that are not valid are answered 401 with a challenge, not 500 and not 403',
    section: 'RFC 9110 §11.6.1',
    level: 'must',
    judge: async (visit) => {
      const answer = await stranger(visit, { Authorization: `Bearer conduct-${randomToken()}` });
      if (answer.status >= 500) return deviates(`they are answered ${answer.status}`);
      if (answer.status !== 401) return warns(`they are answered ${answer.status}`);
      return holdsIf(valuesOf(answer, 'WWW-Authenticate').length > 0, 'the 401 has no WWW-Authenticate');
    },
  },
  {
    id: 'credentials-malformed',
    group: 'authentication',
    title: 'An Authorization that cannot be read is refused with 400 or 401',
    section: 'RFC 9110 §11.6.2',
    level: 'must',
    judge: async (visit) => {
      for (const Authorization of ['Bearer', 'Bearer  ', 'Basic !!!', 'Conduct x']) {
        const { status } = await stranger(visit, { Authorization });
        if (status < 400 || status >= 500)
          return deviates(`Authorization: ${Authorization} is answered ${status}`);
      }
      return holds;
    },
  },
  {
    id: 'scheme-case',
    group: 'authentication',
    title: 'The name of a scheme is the same in lower case',
    section: 'RFC 9110 §11.1',
    level: 'must',
    judge: async (visit) => {
      const [name, value] =
        Object.entries(visit.target.headers).find(([each]) => /^authorization$/i.test(each)) ?? [];
      if (name === undefined || value === undefined) return cannotApply('the target has no Authorization');
      const [scheme = '', ...rest] = value.split(' ');
      if (scheme === scheme.toLowerCase() && scheme === scheme.toUpperCase())
        return cannotApply('the scheme has no case');
      const other = scheme === scheme.toLowerCase() ? scheme.toUpperCase() : scheme.toLowerCase();
      const { status } = await stranger(visit, { [name]: [other, ...rest].join(' ') });
      return holdsIf(status < 400, `the scheme ${other} is answered ${status}`);
    },
  },
  {
    id: 'write-needs-credentials',
    group: 'authentication',
    title: 'A stranger who may not read may not write, and is answered as for reading',
    section: 'RFC 9110 §15.5.2',
    level: 'must',
    writes: true,
    judge: async (visit) => {
      if (!visit.survey.isClosed) return cannotApply('strangers may read the collection');
      const { status } = await visit.post({ isAnonymous: true });
      if (status < 300) return deviates(`a POST without credentials is answered ${status}`);
      return [401, 403].includes(status) ? holds : warns(`a POST without credentials is answered ${status}`);
    },
  },
  {
    id: 'credentials-not-echoed',
    group: 'authentication',
    title: 'A refusal does not repeat the credentials that it refuses',
    section: 'RFC 9110 §17.16',
    level: 'must',
    judge: async (visit) => {
      const secret = `conduct-${randomToken()}`;
      const answer = await stranger(visit, { Authorization: `Bearer ${secret}` });
      const text = `${answer.content.toString()}${answer.fields.flat().join()}`;
      return holdsIf(!text.includes(secret), `the ${answer.status} has the token that it refuses`);
    },
  },
];

/** The request that strangers are refused, without the target's credentials. @throws CannotApply where they may do everything */
function stranger(visit: Visit, headers: Readonly<Record<string, string>>) {
  const { closed } = visit.survey;
  if (closed === undefined) throw new CannotApply('strangers may read and create');
  return closed === 'POST'
    ? visit.post({ headers, isAnonymous: true })
    : visit.send({ method: 'GET', path: visit.target.collection, headers, isAnonymous: true });
}

async function refusedStranger(visit: Visit) {
  const answer = await stranger(visit, {});
  if (answer.status < 400) throw new CannotApply(`it is answered ${answer.status}`);
  if (fieldOf(answer, 'Location') !== undefined) throw new CannotApply('strangers are led elsewhere');
  return answer;
}

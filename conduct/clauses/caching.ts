/** Fields that caches read (RFC 9111, RFC 9110 §6.6.1, §12.5.5). */
import { fieldOf, listOf } from '../answer.ts';
import { type Clause, cannotApply, deviates, holds, holdsIf } from '../clause.ts';
import { imfFixdate, memberOf } from './subjects.ts';

const directive = /^[!#$%&'*+.^_`|~\w-]+(?:=(?:[!#$%&'*+.^_`|~\w-]+|"(?:[^"\\]|\\.)*"))?$/;

export const cachingClauses: readonly Clause[] = [
  {
    id: 'date',
    group: 'caching',
    title: 'An answer has the Date when it was made',
    section: 'RFC 9110 §6.6.1',
    level: 'must',
    judge: async (visit) => {
      const answer = await visit.send({ method: 'GET', path: memberOf(visit) });
      const date = fieldOf(answer, 'Date');
      if (date === undefined) return deviates('GET of a member has no Date');
      if (!imfFixdate.test(date)) return deviates(`Date is ${date}`);
      return holds;
    },
  },
  {
    id: 'cache-control-form',
    group: 'caching',
    title: 'Cache-Control is a list of directives with numbers where they need them',
    section: 'RFC 9111 §5.2',
    level: 'must',
    judge: async (visit) => {
      const value = fieldOf(await visit.send({ method: 'GET', path: memberOf(visit) }), 'Cache-Control');
      if (value === undefined) return cannotApply('GET of a member has no Cache-Control');
      const bad = value
        .split(/,(?=(?:[^"]*"[^"]*")*[^"]*$)/)
        .map((each) => each.trim())
        .filter((each) => !directive.test(each) || /^(?:s-)?max-?age=(?!\d+$|"\d+"$)/i.test(each));
      return holdsIf(bad.length === 0, `Cache-Control has ${bad.join(', ')}`);
    },
  },
  {
    id: 'private-stays-private',
    group: 'caching',
    title:
      'An answer to a request with credentials that strangers may not have is not offered to shared caches',
    section: 'RFC 9111 §3.5',
    level: 'must',
    judge: async (visit) => {
      if (!visit.survey.isClosed) return cannotApply('strangers may read the collection');
      const answer = await visit.send({ method: 'GET', path: visit.target.collection });
      const directives = listOf(answer, 'Cache-Control');
      const shared = directives.filter((each) => each === 'public' || each.startsWith('s-maxage'));
      return holdsIf(shared.length === 0, `Cache-Control has ${shared.join(', ')}`);
    },
  },
  {
    id: 'authorization-varies',
    group: 'caching',
    title:
      'An answer that a cookie or a key of the request decides says so in Vary, or is not cached by others',
    section: 'RFC 9110 §12.5.5',
    level: 'should',
    judge: async (visit) => {
      if (!visit.survey.isClosed) return cannotApply('strangers may read the collection');
      const answer = await visit.send({ method: 'GET', path: visit.target.collection });
      const names = Object.keys(visit.target.headers).map((each) => each.toLowerCase());
      // RFC 9111 §3.5 protects what comes with Authorization; other credentials have Vary and Cache-Control alone.
      const others = names.filter((each) => each === 'cookie' || /key|token/.test(each));
      if (others.length === 0) return cannotApply('the credentials are in Authorization');
      const isKept = listOf(answer, 'Cache-Control').some((each) =>
        /^(?:private|no-store|no-cache)/.test(each),
      );
      const varies = listOf(answer, 'Vary');
      return holdsIf(
        isKept || others.every((each) => varies.includes(each)),
        `Vary is ${varies.join(', ')}, and Cache-Control permits caches`,
      );
    },
  },
];

/** Permissions for pages of other origins (WHATWG Fetch). A server without CORS has nothing to judge. */
import { type Answer, fieldOf, listOf, valuesOf } from '../answer.ts';
import { type Clause, cannotApply, deviates, holds, holdsIf } from '../clause.ts';
import { CannotApply, type Visit } from '../visit.ts';
import { memberOf, missingPath, originOf, preflight, strangeOrigin } from './subjects.ts';

export const crossOriginClauses: readonly Clause[] = [
  {
    id: 'preflight',
    group: 'cross-origin',
    title: 'A preflight of an origin that may read is answered with 2xx and the methods of the resource',
    section: 'Fetch §4.8',
    level: 'must',
    judge: async (visit) => {
      const answer = await preflight(visit, 'PUT', memberOf(visit));
      if (answer.status >= 300) return deviates(`the preflight is answered ${answer.status}`);
      const methods = listOf(answer, 'Access-Control-Allow-Methods');
      const { memberAllow } = visit.survey;
      const missing = ['PUT', 'PATCH', 'DELETE'].filter(
        (each) => memberAllow?.has(each) === true && !methods.includes(each.toLowerCase()),
      );
      return holdsIf(
        missing.length === 0 || methods.includes('*'),
        `Access-Control-Allow-Methods lacks ${missing.join(', ')}`,
      );
    },
  },
  {
    id: 'preflight-headers',
    group: 'cross-origin',
    title: 'A preflight lets pages send Content-Type and Authorization',
    section: 'Fetch §4.8',
    level: 'should',
    judge: async (visit) => {
      const answer = await preflight(visit, 'POST', visit.target.collection);
      const names = listOf(answer, 'Access-Control-Allow-Headers');
      const missing = ['content-type', 'authorization'].filter(
        (each) => !names.includes(each) && !(each === 'content-type' && names.includes('*')),
      );
      return holdsIf(missing.length === 0, `Access-Control-Allow-Headers lacks ${missing.join(', ')}`);
    },
  },
  {
    id: 'origin-one',
    group: 'cross-origin',
    title: 'Access-Control-Allow-Origin is * or one origin',
    section: 'Fetch §3.3.3',
    level: 'must',
    judge: async (visit) => {
      const values = valuesOf(await readable(visit), 'Access-Control-Allow-Origin');
      const isOne = values.length === 1 && !/[ ,]/.test(values[0] ?? '');
      return holdsIf(isOne, `it is ${values.join(' and ')}`);
    },
  },
  {
    id: 'origin-credentials',
    group: 'cross-origin',
    title: 'An answer that permits credentials names the origin, not *',
    section: 'Fetch §3.3.5',
    level: 'must',
    judge: async (visit) => {
      const answer = await readable(visit);
      if (fieldOf(answer, 'Access-Control-Allow-Credentials') !== 'true')
        return cannotApply('credentials are not permitted');
      return holdsIf(
        fieldOf(answer, 'Access-Control-Allow-Origin') !== '*',
        'it is * with credentials, which browsers refuse',
      );
    },
  },
  {
    id: 'origin-not-reflected',
    group: 'cross-origin',
    title: 'Not every origin is allowed with credentials',
    section: 'Fetch §3.3.5',
    level: 'should',
    judge: async (visit) => {
      const headers = { Origin: strangeOrigin };
      const answer = await visit.send({ method: 'GET', path: memberOf(visit), headers });
      const isReflected = fieldOf(answer, 'Access-Control-Allow-Origin') === strangeOrigin;
      const hasCredentials = fieldOf(answer, 'Access-Control-Allow-Credentials') === 'true';
      return holdsIf(
        !(isReflected && hasCredentials),
        `a page of ${strangeOrigin} may act with the cookies of its visitor`,
      );
    },
  },
  {
    id: 'origin-varies',
    group: 'cross-origin',
    title: 'An answer that names the origin has Vary: Origin',
    section: 'Fetch §3.3.5',
    level: 'must',
    judge: async (visit) => {
      const answer = await readable(visit);
      if (fieldOf(answer, 'Access-Control-Allow-Origin') === '*')
        return cannotApply('every origin is answered with *');
      return holdsIf(
        listOf(answer, 'Vary').some((each) => ['origin', '*'].includes(each)),
        `Vary is ${fieldOf(answer, 'Vary')}`,
      );
    },
  },
  {
    id: 'origin-errors',
    group: 'cross-origin',
    title: 'An error can be read by the pages that may read the answer',
    section: 'Fetch §4.10',
    level: 'should',
    judge: async (visit) => {
      await readable(visit);
      const answer = await visit.send({
        method: 'GET',
        path: missingPath(visit),
        headers: { Origin: originOf(visit) },
      });
      return holdsIf(
        fieldOf(answer, 'Access-Control-Allow-Origin') !== undefined,
        `the ${answer.status} has no Access-Control-Allow-Origin`,
      );
    },
  },
  {
    id: 'origin-exposes',
    group: 'cross-origin',
    title: 'Pages may read the ETag and the Location that they need for their next request',
    section: 'Fetch §3.3.6',
    level: 'should',
    judge: async (visit) => {
      const answer = await readable(visit);
      if (fieldOf(answer, 'ETag') === undefined) return cannotApply('a member has no ETag');
      const exposed = listOf(answer, 'Access-Control-Expose-Headers');
      if (exposed.includes('*') || exposed.includes('etag')) return holds;
      return deviates(`Access-Control-Expose-Headers is ${exposed.join(', ') || 'not sent'}`);
    },
  },
];

/** A member as a page of another origin gets it. @throws CannotApply where it may not */
async function readable(visit: Visit): Promise<Answer> {
  const answer = await visit.send({
    method: 'GET',
    path: memberOf(visit),
    headers: { Origin: originOf(visit) },
  });
  if (fieldOf(answer, 'Access-Control-Allow-Origin') === undefined)
    throw new CannotApply('pages of other origins may not read answers');
  return answer;
}

/** QUERY (RFC 10008): its content and types, the fields of its answer, conditions and caches. */
import { type Answer, fieldOf, jsonOf, listOf, valuesOf } from '../answer.ts';
import { type Clause, cannotApply, deviates, holds, holdsIf, warns } from '../clause.ts';
import { pathOf } from '../target.ts';
import { CannotApply, type Visit } from '../visit.ts';
import { isGone, isRefusal, memberOf, preflight, sameState } from './subjects.ts';

export const queryClauses: readonly Clause[] = [
  {
    id: 'query-known',
    group: 'query',
    title: 'QUERY is carried out, or refused with 405 or 501',
    section: 'RFC 10008 §2',
    level: 'must',
    judge: async ({ survey, target, attempt }) => {
      if (survey.query !== undefined) return holds;
      const outcome = await attempt({ method: 'QUERY', path: target.collection, json: {} });
      if ('none' in outcome) return warns(`QUERY has no answer: ${outcome.none}`);
      const { status } = outcome;
      if ([405, 501].includes(status))
        return cannotApply(`the server has no QUERY: it is answered ${status}`);
      if (status === 404) return warns('QUERY of a collection that exists is answered 404');
      if (status < 300)
        return deviates(`QUERY is answered ${status} with ${fieldOf(outcome, 'Content-Type')}`);
      return cannotApply(`no QUERY that the suite knows is carried out: it is answered ${status}`);
    },
  },
  {
    id: 'query-allow',
    group: 'query',
    title: 'The Allow of a resource that answers QUERY lists it',
    section: 'RFC 9110 §10.2.1',
    level: 'should',
    judge: async (visit) => {
      ask(visit);
      const methods = listOf(await visit.send({ method: 'OPTIONS', path: visit.target.collection }), 'Allow');
      if (methods.length === 0) return cannotApply('OPTIONS is answered without Allow');
      return holdsIf(methods.includes('query'), `Allow is ${methods.join(', ').toUpperCase()}`);
    },
  },
  {
    id: 'query-type-missing',
    group: 'query',
    title: 'A QUERY without Content-Type is refused with 4xx',
    section: 'RFC 10008 §2',
    level: 'must',
    judge: async (visit) => {
      const { content } = ask(visit);
      const { status } = await visit.send({ method: 'QUERY', path: visit.target.collection, content });
      if (!isRefusal(status)) return deviates(`it is answered ${status}`);
      return [400, 415].includes(status) ? holds : warns(`it is answered ${status}`);
    },
  },
  {
    id: 'query-type-unknown',
    group: 'query',
    title: 'A QUERY of an unknown media type is answered 415',
    section: 'RFC 10008 §2.1',
    level: 'should',
    judge: async (visit) => {
      const { status } = await sendQuery(visit, { type: 'application/x-conduct-unknown' });
      if (!isRefusal(status)) return deviates(`it is answered ${status}`);
      return holdsIf(status === 415, `it is answered ${status}`);
    },
  },
  {
    id: 'query-type-sniffed',
    group: 'query',
    title: 'The server does not guess a media type that the request names otherwise',
    section: 'RFC 10008 §2.1',
    level: 'must',
    judge: async (visit) => {
      const accepted = acceptedTypes(await visit.send({ method: 'OPTIONS', path: visit.target.collection }));
      const type = ['image/png', 'text/csv'].find((each) => !accepted.includes(each)) ?? 'image/png';
      const { status } = await sendQuery(visit, { type });
      return holdsIf(isRefusal(status), `a query that claims to be ${type} is answered ${status}`);
    },
  },
  {
    id: 'query-malformed',
    group: 'query',
    title: 'A QUERY whose content does not fit its type is refused with 4xx',
    section: 'RFC 10008 §2',
    level: 'must',
    judge: async (visit) => {
      const { type } = ask(visit);
      if (!/json/.test(type)) return cannotApply(`the suite does not know what breaks ${type}`);
      const { status } = await sendQuery(visit, { content: '{"a":' });
      if (!isRefusal(status)) return deviates(`JSON that does not end is answered ${status}`);
      return [400, 422].includes(status) ? holds : warns(`JSON that does not end is answered ${status}`);
    },
  },
  {
    id: 'query-accept',
    group: 'query',
    title: 'Accept-Query names the media types that a resource takes',
    section: 'RFC 10008 §3',
    level: 'should',
    judge: async (visit) => {
      const { type } = ask(visit);
      const answer = await visit.send({ method: 'OPTIONS', path: visit.target.collection });
      const types = acceptedTypes(answer);
      if (types.length === 0) return deviates('the answer to OPTIONS has no Accept-Query');
      const isListed = types.some(
        (each) => each === type || each === '*/*' || each === `${type.split('/')[0]}/*`,
      );
      return holdsIf(isListed, `a QUERY of ${type} is carried out, and Accept-Query is ${types.join(', ')}`);
    },
  },
  {
    id: 'query-accept-form',
    group: 'query',
    title: 'Accept-Query is a list of structured fields: each type a token or a string',
    section: 'RFC 10008 §3',
    level: 'must',
    judge: async (visit) => {
      const [value] = valuesOf(
        await visit.send({ method: 'OPTIONS', path: visit.target.collection }),
        'Accept-Query',
      );
      if (value === undefined) return cannotApply('the answer to OPTIONS has no Accept-Query');
      return holdsIf(structuredTypes.test(value), `Accept-Query is ${value}`);
    },
  },
  {
    id: 'query-safe',
    group: 'query',
    title: 'A QUERY changes nothing',
    section: 'RFC 10008 §2',
    level: 'must',
    judge: async (visit) => {
      const path = memberOf(visit);
      const before = await visit.send({ method: 'GET', path });
      for (let round = 0; round < 2; round += 1) await sendQuery(visit);
      const after = await visit.send({ method: 'GET', path });
      if (isGone(after)) return cannotApply('the member was lost meanwhile');
      return holdsIf(sameState(before, after), 'a member changed');
    },
  },
  {
    id: 'query-location',
    group: 'query',
    title: 'GET of the Location of a QUERY repeats it',
    section: 'RFC 10008 §2.4',
    level: 'must',
    judge: async (visit) => linked(visit, 'Location'),
  },
  {
    id: 'query-content-location',
    group: 'query',
    title: 'GET of the Content-Location of a QUERY has its result',
    section: 'RFC 10008 §2.3',
    level: 'must',
    judge: async (visit) => linked(visit, 'Content-Location'),
  },
  {
    id: 'query-not-modified',
    group: 'query',
    title: 'A QUERY with its own ETag in If-None-Match is answered 304',
    section: 'RFC 10008 §2.6',
    level: 'should',
    judge: async (visit) => {
      const tag = fieldOf(await sendQuery(visit), 'ETag');
      if (tag === undefined) return cannotApply('the answer to QUERY has no ETag');
      const { status } = await sendQuery(visit, { headers: { 'If-None-Match': tag } });
      return holdsIf(status === 304, `it is answered ${status}`);
    },
  },
  {
    id: 'query-not-confused',
    group: 'query',
    title: 'A QUERY with the ETag of another resource in If-None-Match is answered by its result',
    section: 'RFC 10008 §2.6',
    level: 'must',
    judge: async (visit) => {
      const tag = fieldOf(await visit.send({ method: 'GET', path: memberOf(visit) }), 'ETag');
      if (tag === undefined) return cannotApply('a member has no ETag');
      const { status } = await sendQuery(visit, { headers: { 'If-None-Match': tag } });
      return holdsIf(status === 200, `it is answered ${status}`);
    },
  },
  {
    id: 'query-cross-origin',
    group: 'query',
    title: 'A preflight lists QUERY where pages of the origin may send it',
    section: 'RFC 10008 §4',
    level: 'should',
    judge: async (visit) => {
      ask(visit);
      const answer = await preflight(visit, 'QUERY', visit.target.collection);
      const methods = listOf(answer, 'Access-Control-Allow-Methods');
      return holdsIf(
        methods.includes('query') || methods.includes('*'),
        `Access-Control-Allow-Methods is ${methods.join(', ') || 'not sent'}`,
      );
    },
  },
];

/** A type as a token or a string, with parameters (RFC 9651 §3.1). */
const structuredType = String.raw`(?:[A-Za-z*][\w!#$%&'*+.^|~:/-]*|"[\x20\x21\x23-\x5b\x5d-\x7e]*")(?:; *[a-z*][\w.*-]*(?:=[^,;]+)?)*`;
const structuredTypes = new RegExp(`^${structuredType}(?:[ \\t]*,[ \\t]*${structuredType})*$`);

function ask({ survey }: Visit): { readonly type: string; readonly content: string } {
  if (survey.query !== undefined) return survey.query;
  throw new CannotApply(
    survey.queryStatus === undefined ? 'QUERY has no answer' : `QUERY is answered ${survey.queryStatus}`,
  );
}

type QueryParts = {
  readonly type?: string;
  readonly content?: string;
  readonly headers?: Readonly<Record<string, string>>;
};

function sendQuery(visit: Visit, { type, content, headers }: QueryParts = {}): Promise<Answer> {
  const query = ask(visit);
  return visit.send({
    method: 'QUERY',
    path: visit.target.collection,
    content: content ?? query.content,
    headers: { 'Content-Type': type ?? query.type, ...headers },
  });
}

function acceptedTypes(answer: Answer): readonly string[] {
  return listOf(answer, 'Accept-Query').map((each) =>
    (each.split(';')[0] ?? each).trim().replaceAll('"', ''),
  );
}

async function linked(visit: Visit, name: 'Location' | 'Content-Location') {
  const answer = await sendQuery(visit);
  const location = fieldOf(answer, name);
  if (location === undefined) return cannotApply(`the answer to QUERY has no ${name}`);
  const path = pathOf(visit.target, location);
  if (path === undefined) return deviates(`${name} is ${location}`);
  const read = await visit.send({ method: 'GET', path });
  if (read.status !== 200) return deviates(`GET of ${location} is answered ${read.status}`);
  const isSame = JSON.stringify(jsonOf(read)) === JSON.stringify(jsonOf(answer));
  return holdsIf(isSame, `GET of ${location} has another content`);
}

/** Methods and their answers (RFC 9110 §9, §15; RFC 9112 §3.2). */
import { type Answer, fieldOf, jsonOf, type Members, mediaTypeOf, valuesOf } from '../answer.ts';
import { type Clause, cannotApply, deviates, type Finding, holds, holdsIf, warns } from '../clause.ts';
import { changed, differencesOf, documentIn } from '../document.ts';
import { changeOf, pathOf, randomToken } from '../target.ts';
import { CannotApply, type Visit } from '../visit.ts';
import { isGone, isRefusal, memberOf, missingPath, sameState } from './subjects.ts';

/** Methods whose requests change nothing, so that a judge may send them anywhere. */
const safeMethods = ['GET', 'HEAD', 'OPTIONS'] as const;

/** Fields of GET that HEAD has as well, where GET has them. */
const headFields = [
  ...['Content-Type', 'ETag', 'Last-Modified', 'Cache-Control', 'Vary', 'Content-Location', 'Link'],
] as const;

export const methodClauses: readonly Clause[] = [
  {
    id: 'method-unknown',
    group: 'methods',
    title: 'A method that the server does not know is answered 501',
    section: 'RFC 9110 §9.1',
    level: 'should',
    judge: async ({ send, target }) => {
      const { status } = await send({ method: 'FROBNICATE', path: target.collection });
      if (status < 300) return deviates(`FROBNICATE is answered ${status}, as if it were a method`);
      return holdsIf(status === 501, `FROBNICATE is answered ${status}`);
    },
  },
  {
    id: 'method-case',
    group: 'methods',
    title: 'A method in lower case is another method',
    section: 'RFC 9110 §9.1',
    level: 'must',
    judge: async ({ attempt, target }) => {
      const outcome = await attempt({ method: 'get', path: target.collection });
      if ('none' in outcome) return holds;
      return holdsIf(outcome.status >= 400, `"get" is answered ${outcome.status} like GET`);
    },
  },
  {
    id: 'method-not-allowed',
    group: 'methods',
    title: 'A 405 lists the methods of the resource in Allow',
    section: 'RFC 9110 §15.5.6',
    level: 'must',
    judge: async ({ send, target }) => {
      // A registered method that is safe, and that an API rarely has.
      const answer = await send({ method: 'PROPFIND', path: target.collection });
      if (answer.status === 501) return holds;
      if (answer.status === 404) return warns('PROPFIND on a collection that exists is answered 404');
      if (answer.status !== 405) return cannotApply(`PROPFIND is answered ${answer.status}`);
      return holdsIf(fieldOf(answer, 'Allow') !== undefined, 'the 405 has no Allow');
    },
  },
  {
    id: 'allow-is-true',
    group: 'methods',
    title: 'A safe method that Allow lists is not answered 405 or 501',
    section: 'RFC 9110 §10.2.1',
    level: 'must',
    judge: async ({ send, survey, target }) => {
      if (survey.collectionAllow === undefined) return cannotApply('OPTIONS is answered without Allow');
      for (const method of safeMethods) {
        if (!survey.collectionAllow.has(method)) continue;
        const { status } = await send({ method, path: target.collection });
        if ([405, 501].includes(status))
          return deviates(`Allow lists ${method}, which is answered ${status}`);
      }
      return holds;
    },
  },
  {
    id: 'allow-is-whole',
    group: 'methods',
    title: 'GET and HEAD, which every server has, stand in the Allow of a resource that answers them',
    section: 'RFC 9110 §9.1',
    level: 'should',
    judge: async ({ send, survey, target }) => {
      const { collectionAllow } = survey;
      if (collectionAllow === undefined) return cannotApply('OPTIONS is answered without Allow');
      const missing: string[] = [];
      for (const method of ['GET', 'HEAD']) {
        const { status } = await send({ method, path: target.collection });
        if (status < 400 && !collectionAllow.has(method)) missing.push(method);
      }
      return holdsIf(
        missing.length === 0,
        `${missing.join(' and ')} work and are not listed: Allow is ${[...collectionAllow].join(', ')}`,
      );
    },
  },
  {
    id: 'options-allow',
    group: 'methods',
    title: 'OPTIONS of a resource is answered with 2xx and Allow',
    section: 'RFC 9110 §9.3.7',
    level: 'should',
    judge: async ({ send, target }) => {
      const answer = await send({ method: 'OPTIONS', path: target.collection });
      if (answer.status >= 300) return deviates(`OPTIONS is answered ${answer.status}`);
      return holdsIf(fieldOf(answer, 'Allow') !== undefined, 'the answer to OPTIONS has no Allow');
    },
  },
  {
    id: 'options-server',
    group: 'methods',
    title: 'OPTIONS * asks about the server as a whole and is answered, not taken for a path',
    section: 'RFC 9110 §9.3.7',
    level: 'should',
    judge: async ({ attempt }) => {
      const outcome = await attempt({ method: 'OPTIONS', path: '*' });
      if ('none' in outcome) return deviates(outcome.none);
      return holdsIf(outcome.status < 300, `OPTIONS * is answered ${outcome.status}`);
    },
  },
  {
    id: 'get-missing',
    group: 'methods',
    title: 'A member that does not exist is answered 404 or 410',
    section: 'RFC 9110 §15.5.5',
    level: 'must',
    judge: async ({ send, target, survey }) => {
      const { status } = await send({ method: 'GET', path: missingPath({ target, survey }) });
      return absent(status, `a member that does not exist is answered ${status}`);
    },
  },
  {
    id: 'get-is-safe',
    group: 'methods',
    title: 'GET and HEAD change nothing',
    section: 'RFC 9110 §9.2.1',
    level: 'must',
    judge: async (visit) => {
      const path = memberOf(visit);
      const before = await visit.send({ method: 'GET', path });
      for (const method of safeMethods) await visit.send({ method, path });
      const after = await visit.send({ method: 'GET', path });
      if (isGone(after)) return cannotApply('the member was lost meanwhile');
      return holdsIf(sameState(before, after), 'the representation or its ETag changed between two GETs');
    },
  },
  {
    id: 'get-content-ignored',
    group: 'methods',
    title: 'Content of a GET gives it no other meaning and does not break its connection',
    section: 'RFC 9110 §9.3.1',
    level: 'should',
    judge: async (visit) => {
      const path = memberOf(visit);
      const plain = await visit.send({ method: 'GET', path });
      const answer = await visit.send({ method: 'GET', path, json: { conduct: true } });
      if (answer.status >= 500) return deviates(`a GET with content is answered ${answer.status}`);
      if (answer.status >= 400) return holds;
      return holdsIf(sameState(plain, answer), 'a GET with content has another answer than one without');
    },
  },
  {
    id: 'head-fields',
    group: 'methods',
    title: 'HEAD has the status and the fields of GET',
    section: 'RFC 9110 §9.3.2',
    level: 'should',
    judge: async (visit) => {
      for (const path of [memberOf(visit), visit.target.collection]) {
        const get = await visit.send({ method: 'GET', path });
        const head = await visit.send({ method: 'HEAD', path });
        if (head.status !== get.status) return deviates(`GET is answered ${get.status}, HEAD ${head.status}`);
        const different = headFields.filter((name) => fieldOf(get, name) !== fieldOf(head, name));
        if (different.length > 0)
          return deviates(`${different.join(', ')} of HEAD ${differ(different)} from GET's`);
      }
      return holds;
    },
  },
  {
    id: 'head-length',
    group: 'methods',
    title: 'Content-Length of a HEAD, where it is sent, is that of the GET',
    section: 'RFC 9110 §8.6',
    level: 'must',
    judge: async (visit) => {
      for (const path of [memberOf(visit), visit.target.collection]) {
        const { content } = await visit.send({ method: 'GET', path });
        const [length] = valuesOf(await visit.send({ method: 'HEAD', path }), 'Content-Length');
        if (length !== undefined && Number(length) !== content.length)
          return deviates(`HEAD says ${length} octets, GET has ${content.length}`);
      }
      return holds;
    },
  },
  {
    id: 'head-content',
    group: 'methods',
    title: 'An answer to HEAD has no content, also where it is an error',
    section: 'RFC 9110 §9.3.2',
    level: 'must',
    judge: async (visit) => {
      for (const path of [memberOf(visit), missingPath(visit)]) {
        const { rest, status } = await visit.send({ method: 'HEAD', path });
        if (rest.length > 0) return deviates(`HEAD answered ${status} is followed by ${rest.length} octets`);
      }
      return holds;
    },
  },
  {
    id: 'post-created',
    group: 'methods',
    title: 'A POST that creates is answered 201 with a Location',
    section: 'RFC 9110 §9.3.3',
    level: 'should',
    writes: true,
    judge: async (visit) => {
      const answer = await createdAnswer(visit);
      if (answer.status !== 201) return deviates(`the answer is ${answer.status}`);
      return holdsIf(fieldOf(answer, 'Location') !== undefined, 'the 201 has no Location');
    },
  },
  {
    id: 'post-location',
    group: 'methods',
    title: 'The Location of a 201 leads to the new resource',
    section: 'RFC 9110 §10.2.2',
    level: 'must',
    writes: true,
    judge: async (visit) => {
      const answer = await createdAnswer(visit);
      const location = fieldOf(answer, 'Location');
      if (answer.status !== 201 || location === undefined)
        return cannotApply('POST is not answered 201 with a Location');
      const path = pathOf(visit.target, location);
      if (path === undefined) return deviates(`${location} is not a URI reference`);
      const { status } = await visit.send({ method: 'GET', path });
      return holdsIf(status === 200, `GET of ${location} is answered ${status}`);
    },
  },
  {
    id: 'put-replaces',
    group: 'methods',
    title: 'A PUT is stored as it was sent, and answered 200, 201 or 204',
    section: 'RFC 9110 §9.3.4',
    level: 'must',
    writes: true,
    judge: async (visit) => {
      const { path, json } = await replacement(visit);
      const { status } = await visit.send({ method: 'PUT', path, json });
      if ([404, 405, 501].includes(status))
        return cannotApply(`members have no PUT: it is answered ${status}`);
      if (![200, 201, 204].includes(status)) return deviates(`PUT is answered ${status}`);
      const read = await visit.send({ method: 'GET', path });
      const lost = differencesOf(documentIn(jsonOf(read), visit.target.idMember), json);
      return lost.length === 0 ? holds : warns(`${lost.join(', ')} is another after the PUT`);
    },
  },
  {
    id: 'put-idempotent',
    group: 'methods',
    title: 'The same PUT twice has the effect of one',
    section: 'RFC 9110 §9.2.2',
    level: 'must',
    writes: true,
    judge: async (visit) => {
      const { path, json } = await replacement(visit);
      const first = await visit.send({ method: 'PUT', path, json });
      if (first.status >= 300) return cannotApply(`PUT is answered ${first.status}`);
      const second = await visit.send({ method: 'PUT', path, json });
      return holdsIf(
        second.status < 300,
        `the first PUT is answered ${first.status}, the second ${second.status}`,
      );
    },
  },
  {
    id: 'put-content-range',
    group: 'methods',
    title: 'A PUT with Content-Range is refused and does not replace the whole by a part',
    section: 'RFC 9110 §14.5',
    level: 'should',
    writes: true,
    judge: async (visit) => {
      const { path, json } = await replacement(visit);
      const before = await visit.send({ method: 'GET', path });
      const headers = { 'Content-Range': 'bytes 0-1/100' };
      const { status } = await visit.send({ method: 'PUT', path, json, headers });
      if (status < 300) return deviates(`the PUT of a part is answered ${status}`);
      const after = await visit.send({ method: 'GET', path });
      return holdsIf(sameState(before, after), `it is answered ${status}, and the resource changed`);
    },
  },
  {
    id: 'delete-removes',
    group: 'methods',
    title: 'A deleted resource is answered 404 or 410',
    section: 'RFC 9110 §9.3.5',
    level: 'must',
    writes: true,
    judge: async (visit) => {
      const { path } = await visit.create();
      const deleted = await visit.send({ method: 'DELETE', path });
      if ([405, 501].includes(deleted.status)) return cannotApply(`DELETE is answered ${deleted.status}`);
      if (deleted.status === 202) return cannotApply('DELETE is answered 202: the server removes it later');
      if (![200, 204].includes(deleted.status)) return deviates(`DELETE is answered ${deleted.status}`);
      const { status } = await visit.send({ method: 'GET', path });
      return absent(status, `GET after the DELETE is answered ${status}`);
    },
  },
  {
    id: 'delete-idempotent',
    group: 'methods',
    title: 'A second DELETE is answered as gone or done, not as a failure of the server',
    section: 'RFC 9110 §9.2.2',
    level: 'must',
    writes: true,
    judge: async (visit) => {
      const { path } = await visit.create();
      const first = await visit.send({ method: 'DELETE', path });
      if (first.status >= 300) return cannotApply(`DELETE is answered ${first.status}`);
      const { status } = await visit.send({ method: 'DELETE', path });
      return [200, 202, 204].includes(status)
        ? holds
        : absent(status, `the second DELETE is answered ${status}`);
    },
  },
  {
    id: 'trace',
    group: 'methods',
    title: 'TRACE is refused, or echoes the request as message/http without its credentials',
    section: 'RFC 9110 §9.3.8',
    level: 'must',
    judge: async ({ send, target }) => {
      const secret = `conduct-${randomToken()}`;
      const headers = { Authorization: `Bearer ${secret}`, Cookie: `conduct=${secret}` };
      const answer = await send({ method: 'TRACE', path: target.collection, headers, isAnonymous: true });
      if (answer.status >= 300) return holds;
      if (answer.content.includes(secret)) return deviates('TRACE echoes Authorization or Cookie');
      return holdsIf(
        mediaTypeOf(answer) === 'message/http',
        `TRACE is answered ${answer.status} with ${mediaTypeOf(answer)}`,
      );
    },
  },
  {
    id: 'connect-origin',
    group: 'methods',
    title: 'A server that is no proxy refuses CONNECT, and ends no connection without an answer',
    section: 'RFC 9110 §9.3.6',
    level: 'should',
    judge: async ({ attempt, target }) => {
      const outcome = await attempt({
        method: 'CONNECT',
        path: target.host.includes(':') ? target.host : `${target.host}:80`,
      });
      if ('none' in outcome) return warns(outcome.none);
      return outcome.status < 300 ? cannotApply('the server is a proxy: it opens a tunnel to itself') : holds;
    },
  },
  {
    id: 'connect-target',
    group: 'methods',
    title: 'CONNECT to a path is refused: its target is a host and a port',
    section: 'RFC 9112 §3.2.3',
    level: 'must',
    judge: async ({ attempt, target }) => {
      const outcome = await attempt({ method: 'CONNECT', path: target.collection });
      if ('none' in outcome) return holds;
      return holdsIf(outcome.status >= 400, `CONNECT ${target.collection} is answered ${outcome.status}`);
    },
  },
];

/** The last clause of a run, when others have had their chance to lose what stood. */
export const lastClause: Clause = {
  id: 'created-stays',
  group: 'methods',
  title: 'A resource that was created is there until it is deleted',
  section: 'RFC 9110 §9.3.3',
  level: 'must',
  writes: true,
  judge: async ({ send, survey }) => {
    const { member, gone, cannotCreate } = survey;
    if (member === undefined || cannotCreate !== undefined) return cannotApply('nothing could be created');
    const { status } = await send({ method: 'GET', path: member });
    if (gone.length > 0) return deviates(`${gone.join(', ')} was lost while other clauses ran`);
    return holdsIf(status === 200, `${member} is answered ${status} at the end of the run`);
  },
};

/** Judges an answer about what is not there. A 403 may hide that, and no standard forbids another refusal. */
function absent(status: number, why: string): Finding {
  if ([404, 410].includes(status)) return holds;
  return isRefusal(status) ? warns(why) : deviates(why);
}

function differ(names: readonly string[]): string {
  return names.length === 1 ? 'differs' : 'differ';
}

/** The answer to a POST of the sample, whose member the visit removes. @throws CannotApply where it creates nothing */
async function createdAnswer(visit: Visit): Promise<Answer> {
  const answer = await visit.post();
  if (answer.status < 300) return answer;
  throw new CannotApply(`the sample document cannot be created: POST is answered ${answer.status}`);
}

/** A member, and its document with the change, without members that only a server sets. */
async function replacement(visit: Visit): Promise<{ path: string; json: Members }> {
  const { path } = await visit.create();
  return { path, json: changed(visit.sample(), changeOf(visit.target)) };
}

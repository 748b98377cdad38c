/** Messages on a connection: persistence, pipelining, forms of the target, and the framing of answers (RFC 9112). */

import { type Clause, deviates, type Finding, holds, holdsIf, warns } from '../clause.ts';
import type { Outcome } from '../connection.ts';
import { memberOf, missingPath } from './subjects.ts';

const closeWaitMs = 2000;

export const framingClauses: readonly Clause[] = [
  {
    id: 'answers-framed',
    group: 'framing',
    title: 'The length of every answer is said once and is true',
    section: 'RFC 9112 §6',
    level: 'must',
    judge: async (visit) => {
      const path = memberOf(visit);
      for (const [method, each] of [
        ['GET', path],
        ['HEAD', path],
        ['OPTIONS', path],
        ['GET', missingPath(visit)],
        ['GET', visit.target.collection],
      ] as const) {
        const { faults, rest, status } = await visit.send({ method, path: each });
        if (faults.length > 0) return deviates(`${method} answered ${status}: ${faults.join('; ')}`);
        if (rest.length > 0)
          return deviates(`${method} answered ${status} is followed by ${rest.length} octets`);
      }
      return holds;
    },
  },
  {
    id: 'connection-kept',
    group: 'framing',
    title: 'A connection carries another request after the first',
    section: 'RFC 9112 §9.3',
    level: 'should',
    judge: async (visit) => {
      const octets = visit.octetsOf({
        method: 'GET',
        path: memberOf(visit),
        headers: { Connection: 'keep-alive' },
      });
      const connection = await visit.open();
      for (const round of ['first', 'second']) {
        connection.write(octets);
        const outcome = await connection.answer('GET');
        visit.note(octets, outcome);
        if ('none' in outcome) return deviates(`the ${round} request on it: ${outcome.none}`);
      }
      return holds;
    },
  },
  {
    id: 'connection-pipelined',
    group: 'framing',
    title: 'Requests that are sent one after the other without waiting are answered in their order',
    section: 'RFC 9112 §9.3.2',
    level: 'must',
    judge: async (visit) => {
      const member = { method: 'GET', path: memberOf(visit), headers: { Connection: 'keep-alive' } };
      const octets = [member, { ...member, path: missingPath(visit) }, member].map(visit.octetsOf);
      const connection = await visit.open();
      connection.write(octets.join(''));
      const statuses: number[] = [];
      for (const each of octets) {
        const outcome = await connection.answer('GET');
        visit.note(each, outcome);
        if ('none' in outcome) return deviates(`after ${statuses.length} answers: ${outcome.none}`);
        statuses.push(outcome.status);
      }
      const [one, other, third] = statuses;
      return holdsIf(one === third && one !== other, `they are answered ${statuses.join(', ')}`);
    },
  },
  {
    id: 'connection-closed',
    group: 'framing',
    title: 'The server closes the connection after the answer where the request asks for it',
    section: 'RFC 9112 §9.6',
    level: 'must',
    judge: async (visit) => {
      const octets = visit.octetsOf({
        method: 'GET',
        path: memberOf(visit),
        headers: { Connection: 'close' },
      });
      const connection = await visit.open();
      connection.write(octets);
      visit.note(octets, await connection.answer('GET'));
      return holdsIf(await connection.ends(closeWaitMs), `it is open ${closeWaitMs} ms after the answer`);
    },
  },
  {
    id: 'old-client-closed',
    group: 'framing',
    title: 'A client of HTTP/1.0 is answered in a form that it reads: no chunks, and an end',
    section: 'RFC 9112 §6.1',
    level: 'must',
    judge: async (visit) => {
      const octets = visit
        .octetsOf({ method: 'GET', path: visit.target.collection })
        .replace(' HTTP/1.1\r\n', ' HTTP/1.0\r\n');
      const outcome = await visit.sendOctets(octets);
      if ('none' in outcome) return deviates(outcome.none);
      if (outcome.status === 426 || outcome.status === 505)
        return warns(`HTTP/1.0 is answered ${outcome.status}`);
      const isChunked = outcome.fields.some(([name]) => name.toLowerCase() === 'transfer-encoding');
      return holdsIf(!isChunked, 'the answer has Transfer-Encoding');
    },
  },
  {
    id: 'target-absolute',
    group: 'framing',
    title: 'A target in absolute form is the resource that it names',
    section: 'RFC 9112 §3.2.2',
    level: 'must',
    judge: async (visit) => {
      const path = memberOf(visit);
      const { status } = await visit.send({ method: 'GET', path: `${visit.target.url}${path}` });
      return holdsIf(status === 200, `GET ${visit.target.url}${path} is answered ${status}`);
    },
  },
  {
    id: 'leading-line',
    group: 'framing',
    title: 'An empty line before a request is ignored',
    section: 'RFC 9112 §2.2',
    level: 'should',
    judge: async (visit) =>
      answered(await visit.sendOctets(`\r\n${visit.octetsOf({ method: 'GET', path: memberOf(visit) })}`)),
  },
  {
    id: 'field-name-case',
    group: 'framing',
    title: 'Names of fields are the same in any case',
    section: 'RFC 9110 §5.1',
    level: 'must',
    judge: async (visit) => {
      const octets = visit.octetsOf({ method: 'GET', path: memberOf(visit) });
      const turned = octets.replace(/^(?!GET)[\w-]+(?=:)/gm, (name) =>
        name === 'Host' ? 'hOST' : name.toUpperCase(),
      );
      return answered(await visit.sendOctets(turned));
    },
  },
  {
    id: 'field-space',
    group: 'framing',
    title: 'Space around the value of a field, or none, means nothing',
    section: 'RFC 9112 §5',
    level: 'must',
    judge: async (visit) => {
      const octets = visit.octetsOf({ method: 'GET', path: memberOf(visit) });
      return answered(
        await visit.sendOctets(octets.replace('Host: ', 'Host:').replace('Accept: */*', 'Accept: \t */* \t')),
      );
    },
  },
  {
    id: 'chunked-content',
    group: 'framing',
    title: 'Content in chunks, with an extension and a trailer, is read like content with a length',
    section: 'RFC 9112 §7.1',
    level: 'must',
    writes: true,
    judge: async (visit) => {
      const sized = await visit.post();
      if (sized.status >= 300) return warns(`the sample cannot be created: POST is answered ${sized.status}`);
      const text = JSON.stringify(visit.sample());
      const half = Math.ceil(Buffer.byteLength(text) / 2);
      const octets = Buffer.from(text);
      const chunk = (part: Buffer, extension = ''): string =>
        `${part.length.toString(16)}${extension}\r\n${part.toString('latin1')}\r\n`;
      const head = visit.octetsOf({
        ...{ method: 'POST', path: visit.target.collection },
        headers: { 'Content-Type': 'application/json', 'Transfer-Encoding': 'chunked' },
      });
      const content = `${chunk(octets.subarray(0, half), ';conduct=1')}${chunk(octets.subarray(half))}0\r\nConduct: 1\r\n\r\n`;
      const outcome = await visit.sendOctets(`${head}${content}`, { method: 'POST' });
      if ('none' in outcome) return deviates(outcome.none);
      visit.removeCreated(outcome);
      return holdsIf(
        outcome.status === sized.status,
        `with a length it is answered ${sized.status}, in chunks ${outcome.status}`,
      );
    },
  },
  {
    id: 'percent-encoding',
    group: 'framing',
    title: 'A path whose percent-encoding cannot be read is refused, and the server goes on',
    section: 'RFC 3986 §2.1',
    level: 'must',
    judge: async (visit) => {
      const path = `${visit.target.collection.replace(/\/$/, '')}/%zz`;
      const outcome = await visit.attempt({ method: 'GET', path });
      if ('none' in outcome) return deviates(outcome.none);
      return holdsIf(
        outcome.status >= 400 && outcome.status < 500,
        `GET ${path} is answered ${outcome.status}`,
      );
    },
  },
];

function answered(outcome: Outcome): Finding {
  if ('none' in outcome) return deviates(outcome.none);
  return holdsIf(outcome.status === 200, `it is answered ${outcome.status}`);
}

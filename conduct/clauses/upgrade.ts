/** Upgrade, WebSocket and h2c (RFC 9110 §7.8, RFC 6455, RFC 9113). */
import { createHash } from 'node:crypto';
import { type Answer, fieldOf, listOf } from '../answer.ts';
import { type Clause, deviates, holds, holdsIf, warns } from '../clause.ts';
import { CannotApply, type Visit } from '../visit.ts';
import { memberOf } from './subjects.ts';

/** The payload of a SETTINGS frame, as RFC 7540 §3.2.1 has it. */
const settings = 'AAMAAABkAAQAoAAAAAIAAAAA';
/** Sixteen octets. */
const key = Buffer.from('comity conduct !').toString('base64');

export const upgradeClauses: readonly Clause[] = [
  {
    id: 'upgrade-unknown',
    group: 'upgrade',
    title: 'An Upgrade to a protocol that the server does not know is ignored',
    section: 'RFC 9110 §7.8',
    level: 'should',
    judge: async (visit) => {
      const headers = { Upgrade: 'conduct/1', Connection: 'Upgrade, close' };
      const { status } = await visit.send({ method: 'GET', path: memberOf(visit), headers });
      if (status === 101) return deviates('it is answered 101');
      return holdsIf(status === 200, `it is answered ${status}`);
    },
  },
  {
    id: 'upgrade-h2c',
    group: 'upgrade',
    title: 'An Upgrade to h2c is taken with 101 and Upgrade: h2c, or ignored',
    section: 'RFC 9110 §15.2.2',
    level: 'must',
    judge: async (visit) => {
      const headers = { Upgrade: 'h2c', Connection: 'Upgrade, HTTP2-Settings', 'HTTP2-Settings': settings };
      const answer = await visit.send({ method: 'GET', path: memberOf(visit), headers });
      if (answer.status === 101)
        return holdsIf(listOf(answer, 'Upgrade').includes('h2c'), `Upgrade is ${fieldOf(answer, 'Upgrade')}`);
      return answer.status === 200 ? holds : warns(`it is answered ${answer.status}`);
    },
  },
  {
    id: 'upgrade-websocket-elsewhere',
    group: 'upgrade',
    title: 'A WebSocket handshake where no socket is served opens none and gets an answer',
    section: 'RFC 6455 §4.2.2',
    level: 'must',
    judge: async (visit) => {
      const headers = {
        ...{ Upgrade: 'websocket', Connection: 'Upgrade' },
        ...{ 'Sec-WebSocket-Version': '13', 'Sec-WebSocket-Key': key },
      };
      const outcome = await visit.attempt({ method: 'GET', path: memberOf(visit), headers });
      if ('none' in outcome) return warns(outcome.none);
      return holdsIf(outcome.status !== 101, 'a member is answered 101');
    },
  },
  {
    id: 'websocket-accepted',
    group: 'upgrade',
    title: 'A WebSocket handshake is answered 101 with the Sec-WebSocket-Accept of its key',
    section: 'RFC 6455 §4.2.2',
    level: 'must',
    judge: async (visit) => {
      const answer = await handshake(visit, {});
      if (answer.status !== 101) return deviates(`it is answered ${answer.status}`);
      const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
      return holdsIf(fieldOf(answer, 'Sec-WebSocket-Accept') === accept, 'Sec-WebSocket-Accept is another');
    },
  },
  {
    id: 'websocket-version',
    group: 'upgrade',
    title: 'A WebSocket handshake of another version is refused and names the version that is spoken',
    section: 'RFC 6455 §4.2.2',
    level: 'must',
    judge: async (visit) => {
      const answer = await handshake(visit, { 'Sec-WebSocket-Version': '7' });
      if (answer.status < 400) return deviates(`it is answered ${answer.status}`);
      const isNamed = listOf(answer, 'Sec-WebSocket-Version').includes('13');
      return isNamed ? holds : warns(`the ${answer.status} has no Sec-WebSocket-Version: 13`);
    },
  },
  {
    id: 'websocket-key',
    group: 'upgrade',
    title: 'A WebSocket handshake whose key is not 16 octets in base64 is refused',
    section: 'RFC 6455 §4.2.1',
    level: 'must',
    judge: async (visit) => {
      const answer = await handshake(visit, { 'Sec-WebSocket-Key': 'conduct' });
      return holdsIf(answer.status >= 400 && answer.status < 500, `it is answered ${answer.status}`);
    },
  },
  {
    id: 'upgrade-old-client',
    group: 'upgrade',
    title: 'An Upgrade from HTTP/1.0 is ignored',
    section: 'RFC 9110 §7.8',
    level: 'must',
    judge: async (visit) => {
      const headers = { Upgrade: 'h2c', Connection: 'Upgrade, HTTP2-Settings', 'HTTP2-Settings': settings };
      const octets = visit.octetsOf({ method: 'GET', path: memberOf(visit), headers });
      const outcome = await visit.sendOctets(octets.replace(' HTTP/1.1\r\n', ' HTTP/1.0\r\n'));
      if ('none' in outcome) return warns(outcome.none);
      return holdsIf(outcome.status !== 101, 'it is answered 101');
    },
  },
];

function handshake(visit: Visit, headers: Readonly<Record<string, string>>): Promise<Answer> {
  const { websocket } = visit.target;
  if (websocket === undefined) throw new CannotApply('the target names no WebSocket');
  const fields = {
    Upgrade: 'websocket',
    Connection: 'Upgrade',
    'Sec-WebSocket-Version': '13',
    'Sec-WebSocket-Key': key,
  };
  return visit.send({ method: 'GET', path: websocket, headers: { ...fields, ...headers } });
}

/** Expect, answers of 1xx, and refusals before the content has come (RFC 9110 §10.1.1, §15.2). */

import { type Clause, cannotApply, deviates, holds, holdsIf, warns } from '../clause.ts';
import type { Connection, Outcome } from '../connection.ts';
import type { Visit } from '../visit.ts';
import { memberOf } from './subjects.ts';

/** Longer than a server takes to look at a header section, and short enough for a run. */
const lookMs = 2000;
const hugeBytes = 1_099_511_627_776;
const pieceBytes = 65_536;
const pieces = 32;

export const interimClauses: readonly Clause[] = [
  {
    id: 'expect-continue',
    group: 'interim',
    title: 'Expect: 100-continue is answered at once, with 100 or with the final status',
    section: 'RFC 9110 §10.1.1',
    level: 'must',
    writes: true,
    judge: async (visit) => {
      const octets = visit.octetsOf({
        ...{ method: 'POST', path: visit.target.collection, content: 'conduct' },
        headers: { 'Content-Type': 'application/x-conduct-unknown', Expect: '100-continue' },
      });
      const [head = '', content = ''] = octets.split(/(?<=\r\n\r\n)/);
      const connection = await visit.open();
      connection.write(head);
      // The first line of either answer; a 100 alone is no whole answer, so the content follows it.
      const early = await connection.peek(lookMs);
      if (early.length === 0) {
        visit.note(head, { none: `nothing came within ${lookMs} ms` });
        return deviates(`neither 100 nor a final status came within ${lookMs} ms`);
      }
      connection.write(content);
      const outcome = await noted(visit, connection, octets);
      return 'none' in outcome ? deviates(outcome.none) : holds;
    },
  },
  {
    id: 'expect-old-client',
    group: 'interim',
    title: 'A client of HTTP/1.0 gets no answer of 1xx',
    section: 'RFC 9110 §15.2',
    level: 'must',
    judge: async (visit) => {
      const path = memberOf(visit);
      const octets = visit.octetsOf({
        method: 'GET',
        path,
        content: 'x',
        headers: { Expect: '100-continue' },
      });
      const outcome = await visit.sendOctets(octets.replace(' HTTP/1.1\r\n', ' HTTP/1.0\r\n'));
      if ('none' in outcome) return cannotApply(outcome.none);
      return holdsIf(
        outcome.interim.length === 0,
        `it gets ${outcome.interim.map(({ status }) => status).join(', ')}`,
      );
    },
  },
  {
    id: 'expect-unknown',
    group: 'interim',
    title: 'An expectation that the server does not know is refused with 417 or ignored',
    section: 'RFC 9110 §10.1.1',
    level: 'must',
    judge: async (visit) => {
      const { status } = await visit.send({
        method: 'GET',
        path: memberOf(visit),
        headers: { Expect: 'conduct=1' },
      });
      if (status === 417 || status < 300) return holds;
      return status >= 500 ? deviates(`it is answered ${status}`) : warns(`it is answered ${status}`);
    },
  },
  {
    id: 'huge-content',
    group: 'interim',
    title: 'A client that sends more than the server takes gets the refusal, not a broken connection',
    section: 'RFC 9110 §15.5.14',
    level: 'should',
    writes: true,
    judge: async (visit) => {
      const octets = visit.octetsOf({
        ...{ method: 'POST', path: visit.target.collection },
        headers: { 'Content-Type': 'application/json', 'Content-Length': String(hugeBytes) },
      });
      const connection = await visit.open();
      connection.write(octets);
      // Two MiB at most, as a client that has not looked for an answer yet sends them.
      const piece = Buffer.alloc(pieceBytes, ' ');
      for (let sent = 0; sent < pieces; sent += 1) {
        connection.write(piece);
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
      const outcome = await noted(visit, connection, octets, lookMs);
      if ('none' in outcome)
        return outcome.none.startsWith('no answer')
          ? cannotApply('the server reads on and on')
          : deviates(outcome.none);
      if (outcome.status < 300)
        return deviates(`it is answered ${outcome.status} before the content has come`);
      return outcome.status === 413 ? holds : warns(`it is answered ${outcome.status}`);
    },
  },
];

async function noted(
  visit: Visit,
  connection: Connection,
  octets: string,
  waitMs?: number,
): Promise<Outcome> {
  const outcome = await connection.answer('POST', waitMs);
  visit.note(octets, outcome);
  return outcome;
}

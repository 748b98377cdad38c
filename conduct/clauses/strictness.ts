/**
 * Requests that a server has to refuse (RFC 9110 §5, RFC 9112). Each is a GET of the collection with one mistake in its octets, or a POST
 * of content that is no document, and harmless: it asks for nothing else. Two servers that read such a request differently can be set against each other, so refusal is a must.
 */

import { type Clause, cannotApply, deviates, type Finding, holds, holdsIf, warns } from '../clause.ts';
import type { Outcome } from '../connection.ts';
import type { Visit } from '../visit.ts';

type Row = {
  readonly id: string;
  readonly title: string;
  readonly section: string;
  readonly level?: 'should';
  /** The request, from that without a mistake. */
  readonly spoil: (octets: string) => string;
  /** The statuses of the standard; others of 4xx get a warning. */
  readonly statuses?: readonly number[];
};

const longBytes = 1_000_000;
const bodyless = 'GET';

const rows: readonly Row[] = [
  {
    id: 'host-missing',
    title: 'A request of HTTP/1.1 without Host is answered 400',
    section: 'RFC 9112 §3.2',
    spoil: (octets) => octets.replace(/Host: .*\r\n/, ''),
  },
  {
    id: 'host-twice',
    title: 'A request with two Host fields is answered 400',
    section: 'RFC 9112 §3.2',
    spoil: (octets) => octets.replace(/(Host: .*\r\n)/, '$1$1'),
  },
  {
    id: 'host-invalid',
    title: 'A Host that is no authority is answered 400',
    section: 'RFC 9112 §3.2',
    spoil: (octets) => octets.replace(/Host: .*\r\n/, 'Host: con duct/\r\n'),
  },
  {
    id: 'space-before-colon',
    title: 'Space between the name of a field and its colon is answered 400',
    section: 'RFC 9112 §5.1',
    spoil: (octets) => octets.replace('Accept:', 'Accept :'),
  },
  {
    id: 'folded-field',
    title: 'A field that is folded over two lines is refused, or read as one line',
    section: 'RFC 9112 §5.2',
    level: 'should',
    spoil: (octets) => octets.replace('Accept: */*', 'Accept: */*,\r\n text/html'),
  },
  {
    id: 'field-name-invalid',
    title: 'A name of a field with a character that no name has is refused',
    section: 'RFC 9110 §5.1',
    spoil: (octets) => octets.replace('Accept:', 'Acc(ept:'),
  },
  {
    id: 'field-control',
    title: 'A NUL in the value of a field is refused or replaced',
    section: 'RFC 9110 §5.5',
    level: 'should',
    spoil: (octets) => octets.replace('Accept: */*', 'Accept: */*\r\nConduct: a\0b'),
  },
  {
    id: 'bare-cr',
    title: 'A CR without LF within a field is refused or replaced',
    section: 'RFC 9112 §2.2',
    level: 'should',
    spoil: (octets) => octets.replace('Accept: */*', 'Accept: */*\r\nConduct: a\rb'),
  },
  {
    id: 'length-twice',
    title: 'Two lengths that differ are answered 400',
    section: 'RFC 9112 §6.3',
    spoil: (octets) => octets.replace('\r\n\r\n', '\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx'),
  },
  {
    id: 'length-signed',
    title: 'A length with a sign is answered 400',
    section: 'RFC 9110 §8.6',
    spoil: (octets) => octets.replace('\r\n\r\n', '\r\nContent-Length: +1\r\n\r\nx'),
  },
  {
    id: 'length-negative',
    title: 'A length below zero is answered 400',
    section: 'RFC 9110 §8.6',
    spoil: (octets) => octets.replace('\r\n\r\n', '\r\nContent-Length: -1\r\n\r\n'),
  },
  {
    id: 'length-hexadecimal',
    title: 'A length that is no decimal number is answered 400',
    section: 'RFC 9110 §8.6',
    spoil: (octets) => octets.replace('\r\n\r\n', '\r\nContent-Length: 0x1\r\n\r\nx'),
  },
  {
    id: 'chunked-not-last',
    title: 'Transfer codings of which chunked is not the last are answered 400',
    section: 'RFC 9112 §6.3',
    spoil: (octets) =>
      octets.replace('\r\n\r\n', '\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n'),
    statuses: [400, 501],
  },
  {
    id: 'coding-unknown-transfer',
    title: 'A transfer coding that the server does not know is answered 501',
    section: 'RFC 9112 §6.1',
    level: 'should',
    spoil: (octets) => octets.replace('\r\n\r\n', '\r\nTransfer-Encoding: conduct\r\n\r\n'),
    statuses: [400, 501],
  },
  {
    id: 'chunk-size-invalid',
    title: 'A chunk whose size is no number is answered 400',
    section: 'RFC 9112 §7.1',
    // The content of a GET may be left unread.
    spoil: (octets) =>
      octets
        .replace('GET', 'POST')
        .replace(
          '\r\n\r\n',
          '\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n\r\n',
        ),
  },
  {
    id: 'target-space',
    title: 'A space in the target is answered 400',
    section: 'RFC 9112 §3.2',
    spoil: (octets) => octets.replace(' HTTP/1.1', ' conduct HTTP/1.1'),
  },
  {
    id: 'target-fragment',
    title: 'A fragment in the target is answered 400',
    section: 'RFC 9112 §3.2.1',
    level: 'should',
    spoil: (octets) => octets.replace(' HTTP/1.1', '#conduct HTTP/1.1'),
  },
  {
    id: 'version-unknown',
    title: 'A major version that the server does not speak is answered 505',
    section: 'RFC 9110 §15.6.6',
    level: 'should',
    spoil: (octets) => octets.replace(' HTTP/1.1', ' HTTP/9.1'),
    statuses: [400, 505],
  },
  {
    id: 'version-malformed',
    title: 'A request line without a version is answered 400',
    section: 'RFC 9112 §3',
    spoil: (octets) => octets.replace(' HTTP/1.1', ' HTTX/1.1'),
    statuses: [400, 505],
  },
  {
    id: 'target-long',
    title: 'A target that is longer than the server reads is answered 414',
    section: 'RFC 9112 §3',
    spoil: (octets) => octets.replace(' HTTP/1.1', `?conduct=${'x'.repeat(longBytes)} HTTP/1.1`),
    statuses: [414, 431, 400],
  },
  {
    id: 'fields-long',
    title: 'Fields that are longer than the server reads are answered 431',
    section: 'RFC 6585 §5',
    spoil: (octets) => octets.replace('\r\n\r\n', `\r\nConduct: ${'x'.repeat(longBytes)}\r\n\r\n`),
    statuses: [431, 400, 413],
  },
];

export const strictnessClauses: readonly Clause[] = [
  ...rows.map((row): Clause => {
    const { id, title, section, spoil, statuses = [400] } = row;
    return {
      ...{ id, title, section, group: 'strictness' },
      level: row.level ?? 'must',
      judge: async (visit) => {
        const octets = plain(visit);
        const spoilt = spoil(octets);
        if (spoilt === octets) return cannotApply('the request could not be spoilt');
        const outcome = await visit.sendOctets(spoilt, { method: bodyless });
        const isTaken = !('none' in outcome) && outcome.status < 400;
        if (isTaken && unbounded.has(id))
          return cannotApply(`the server reads ${longBytes} octets, which it may`);
        return refused(outcome, statuses, id);
      },
    };
  }),
  {
    id: 'length-and-chunks',
    group: 'strictness',
    title:
      'A request with both Content-Length and Transfer-Encoding is refused, or its connection ends with the answer',
    section: 'RFC 9112 §6.1',
    level: 'must',
    judge: async (visit) => {
      const fields = '\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n';
      const octets = plain(visit)
        .replace('Connection: close', 'Connection: keep-alive')
        .replace('\r\n\r\n', fields);
      const connection = await visit.open();
      connection.write(octets);
      const outcome = await connection.answer(bodyless);
      visit.note(octets, outcome);
      if ('none' in outcome) return warns(outcome.none);
      if (outcome.status >= 400)
        return holdsIf(outcome.status < 500 || outcome.status === 501, `it is answered ${outcome.status}`);
      return holdsIf(
        await connection.ends(2000),
        `it is answered ${outcome.status}, and the connection goes on`,
      );
    },
  },
  {
    id: 'goes-on',
    group: 'strictness',
    title: 'The server goes on after requests that it refused',
    section: 'RFC 9110 §15.5',
    level: 'must',
    judge: async (visit) => {
      for (const { spoil } of rows.slice(0, 5)) await visit.sendOctets(spoil(plain(visit)));
      const outcome = await visit.attempt({ method: 'GET', path: visit.target.collection });
      return 'none' in outcome
        ? deviates(outcome.none)
        : holdsIf(outcome.status < 500, `it is answered ${outcome.status}`);
    },
  },
];

function plain(visit: Visit): string {
  return visit.octetsOf({ method: bodyless, path: visit.target.collection });
}

/** Lengths that no standard bounds. */
const unbounded: ReadonlySet<string> = new Set(['target-long', 'fields-long']);

/** A folded line, a NUL or a CR may also be replaced by a space, so that the request is answered. */
const replaceable: ReadonlySet<string> = new Set(['folded-field', 'field-control', 'bare-cr']);

function refused(outcome: Outcome, statuses: readonly number[], id: string): Finding {
  if ('none' in outcome) return warns(`it is refused without words: ${outcome.none}`);
  const { status } = outcome;
  if (statuses.includes(status)) return holds;
  if (status >= 400 && status < 500) return warns(`it is refused with ${status}`);
  if (status >= 500) return deviates(`it is answered ${status}`);
  return replaceable.has(id)
    ? warns(`it is answered ${status}: the octet may have been replaced`)
    : deviates(`it is answered ${status}`);
}

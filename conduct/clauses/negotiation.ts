/** Negotiation of answers, and contents that a server does not take (RFC 9110 §8.3, §8.4, §12, §15.5). */
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { fieldOf, jsonOf, listOf, mediaTypeOf } from '../answer.ts';
import { type Clause, cannotApply, deviates, holds, holdsIf, warns } from '../clause.ts';
import { isRefusal, memberOf } from './subjects.ts';

export const negotiationClauses: readonly Clause[] = [
  {
    id: 'content-type-true',
    group: 'negotiation',
    title: 'Content of an answer has a Content-Type, and JSON is JSON',
    section: 'RFC 9110 §8.3',
    level: 'should',
    judge: async (visit) => {
      const answer = await visit.send({ method: 'GET', path: memberOf(visit) });
      const type = mediaTypeOf(answer);
      if (type === undefined) return deviates('GET of a member has no Content-Type');
      if (!/[/+]json$/.test(type)) return holds;
      return holdsIf(jsonOf(answer) !== undefined, `the content is ${type} and cannot be read as JSON`);
    },
  },
  {
    id: 'accept-json',
    group: 'negotiation',
    title: 'A client that accepts JSON alone gets JSON',
    section: 'RFC 9110 §12.5.1',
    level: 'must',
    judge: async (visit) => {
      const path = memberOf(visit);
      if (!/json/.test(mediaTypeOf(await visit.send({ method: 'GET', path })) ?? ''))
        return cannotApply('members are not JSON');
      const answer = await visit.send({ method: 'GET', path, headers: { Accept: 'application/json' } });
      return holdsIf(
        /json/.test(mediaTypeOf(answer) ?? ''),
        `Accept: application/json gets ${mediaTypeOf(answer)}`,
      );
    },
  },
  {
    id: 'accept-nothing',
    group: 'negotiation',
    title: 'A client that accepts no type of the resource gets 406',
    section: 'RFC 9110 §12.5.1',
    level: 'should',
    judge: async (visit) => {
      const headers = { Accept: 'image/x-conduct' };
      const { status } = await visit.send({ method: 'GET', path: memberOf(visit), headers });
      if (status >= 500) return deviates(`it is answered ${status}`);
      // RFC 9110 §12.5.1 lets a server send what was not asked for.
      return status === 406 ? holds : warns(`it is answered ${status}: Accept is ignored`);
    },
  },
  {
    id: 'accept-malformed',
    group: 'negotiation',
    title: 'An Accept that cannot be read does not make the server fail',
    section: 'RFC 9110 §12.5.1',
    level: 'must',
    judge: async (visit) => {
      const headers = { Accept: ';;;q=,//' };
      const { status } = await visit.send({ method: 'GET', path: memberOf(visit), headers });
      return holdsIf(status < 500, `it is answered ${status}`);
    },
  },
  {
    id: 'coding-decodes',
    group: 'negotiation',
    title: 'Content in a coding that the client accepts decodes to the plain content',
    section: 'RFC 9110 §8.4',
    level: 'must',
    judge: async (visit) => {
      const path = visit.target.collection;
      const plain = await visit.send({ method: 'GET', path });
      for (const [coding, decode] of [
        ['gzip', gunzipSync],
        ['br', brotliDecompressSync],
      ] as const) {
        const answer = await visit.send({ method: 'GET', path, headers: { 'Accept-Encoding': coding } });
        const used = listOf(answer, 'Content-Encoding');
        if (used.length === 0) continue;
        if (used.join() !== coding) return deviates(`Accept-Encoding: ${coding} gets ${used.join(', ')}`);
        // RFC 1952, RFC 7932: content that does not decode throws, which is what is judged.
        const decoded = attemptDecode(decode, answer.content);
        if (decoded === undefined) return deviates(`the content does not decode as ${coding}`);
        if (!decoded.equals(plain.content) && answer.fields.length === plain.fields.length)
          return warns(`${coding} decodes to another content than the plain answer's`);
      }
      return holds;
    },
  },
  {
    id: 'coding-varies',
    group: 'negotiation',
    title: 'An answer that is compressed by Accept-Encoding has Vary: Accept-Encoding',
    section: 'RFC 9110 §12.5.5',
    level: 'should',
    judge: async (visit) => {
      const coded = await largeAnswer(visit, 'gzip');
      if (fieldOf(coded, 'Content-Encoding') === undefined) return cannotApply('no answer is compressed');
      return holdsIf(
        listOf(coded, 'Vary').some((each) => ['accept-encoding', '*'].includes(each)),
        `Vary is ${fieldOf(coded, 'Vary')}`,
      );
    },
  },
  {
    id: 'coding-tag',
    group: 'negotiation',
    title: 'A compressed representation does not share a strong ETag with the plain one',
    section: 'RFC 9110 §8.8.3.3',
    level: 'must',
    judge: async (visit) => {
      const plain = await largeAnswer(visit, 'identity');
      const coded = await largeAnswer(visit, 'gzip');
      if (fieldOf(coded, 'Content-Encoding') === undefined) return cannotApply('no answer is compressed');
      const [tag, codedTag] = [fieldOf(plain, 'ETag'), fieldOf(coded, 'ETag')];
      if (tag === undefined || codedTag === undefined) return cannotApply('the answer has no ETag');
      return holdsIf(tag !== codedTag || tag.startsWith('W/'), `both have the ETag ${tag}`);
    },
  },
  {
    id: 'coding-unknown',
    group: 'negotiation',
    title: 'A client that accepts only unknown codings gets the plain content',
    section: 'RFC 9110 §12.5.3',
    level: 'should',
    judge: async (visit) => {
      const headers = { 'Accept-Encoding': 'x-conduct' };
      const answer = await visit.send({ method: 'GET', path: memberOf(visit), headers });
      return holdsIf(
        answer.status === 200 && fieldOf(answer, 'Content-Encoding') === undefined,
        `it is answered ${answer.status}`,
      );
    },
  },
  {
    id: 'content-type-unknown',
    group: 'negotiation',
    title: 'A POST of an unknown media type is answered 415',
    section: 'RFC 9110 §15.5.16',
    level: 'should',
    writes: true,
    judge: async (visit) => {
      const headers = { 'Content-Type': 'application/x-conduct-unknown' };
      const { status } = await visit.send({
        method: 'POST',
        path: visit.target.collection,
        content: 'conduct',
        headers,
      });
      if (!isRefusal(status)) return deviates(`it is answered ${status}`);
      return holdsIf(status === 415, `it is answered ${status}`);
    },
  },
  {
    id: 'content-coding-unknown',
    group: 'negotiation',
    title: 'Content in a coding that the server does not know is answered 415',
    section: 'RFC 9110 §8.4',
    level: 'should',
    writes: true,
    judge: async (visit) => {
      const answer = await visit.post({ headers: { 'Content-Encoding': 'x-conduct' } });
      if (answer.status < 300) return deviates(`it is answered ${answer.status}, as if it were not coded`);
      return holdsIf(answer.status === 415, `it is answered ${answer.status}`);
    },
  },
  {
    id: 'content-malformed',
    group: 'negotiation',
    title: 'JSON that cannot be read is refused with 400 or 422',
    section: 'RFC 9110 §15.5.1',
    level: 'must',
    writes: true,
    judge: async (visit) => {
      const headers = { 'Content-Type': 'application/json' };
      const { status } = await visit.send({
        method: 'POST',
        path: visit.target.collection,
        content: '{"a":',
        headers,
      });
      if (!isRefusal(status)) return deviates(`it is answered ${status}`);
      return [400, 422].includes(status) ? holds : warns(`it is answered ${status}`);
    },
  },
];

function attemptDecode(decode: (octets: Buffer) => Buffer, octets: Buffer): Buffer | undefined {
  try {
    return decode(octets);
  } catch {
    // The caller says that it does not decode.
    return undefined;
  }
}

/** The list, which is the longest answer that a collection has. */
function largeAnswer(visit: Parameters<Clause['judge']>[0], coding: string) {
  return visit.send({ method: 'GET', path: visit.target.collection, headers: { 'Accept-Encoding': coding } });
}

/** Ranges (RFC 9110 §14). A server may ignore Range; one that takes it does so by these rules. */
import { type Answer, fieldOf, listOf, mediaTypeOf } from '../answer.ts';
import { type Clause, cannotApply, deviates, holds, holdsIf, warns } from '../clause.ts';
import { CannotApply, type Visit } from '../visit.ts';
import { memberOf } from './subjects.ts';

export const rangeClauses: readonly Clause[] = [
  ...[
    [
      'range-first',
      'The first octets of a representation come as 206 with their Content-Range',
      'bytes=0-3',
      0,
      4,
    ],
    ['range-open', 'A range without an end goes on to the end', 'bytes=4-', 4, undefined],
    ['range-suffix', 'A suffix range is the last octets', 'bytes=-3', -3, undefined],
  ].map(
    ([id, title, range, from, to]): Clause => ({
      ...{
        id: String(id),
        title: String(title),
        group: 'ranges',
        section: 'RFC 9110 §14.1.2',
        level: 'must',
      },
      judge: async (visit) => {
        const { path, whole } = await ranged(visit);
        const part = await visit.send({ method: 'GET', path, headers: { Range: String(range) } });
        const { length } = whole.content;
        const expected = whole.content.subarray(Number(from), to === undefined ? undefined : Number(to));
        if (!part.content.equals(expected))
          return deviates(`${range} has ${part.content.length} octets that are not these`);
        const first = Number(from) < 0 ? length + Number(from) : Number(from);
        const wanted = `bytes ${first}-${first + expected.length - 1}/${length}`;
        return holdsIf(
          fieldOf(part, 'Content-Range') === wanted,
          `Content-Range is ${fieldOf(part, 'Content-Range')}, not ${wanted}`,
        );
      },
    }),
  ),
  {
    id: 'range-accepted',
    group: 'ranges',
    title: 'A server that answers ranges says so in Accept-Ranges',
    section: 'RFC 9110 §14.3',
    level: 'should',
    judge: async (visit) => {
      const { whole } = await ranged(visit);
      return holdsIf(listOf(whole, 'Accept-Ranges').includes('bytes'), 'GET has no Accept-Ranges: bytes');
    },
  },
  {
    id: 'range-unsatisfiable',
    group: 'ranges',
    title: 'A range beyond the end is answered 416 with the length in Content-Range',
    section: 'RFC 9110 §15.5.17',
    level: 'should',
    judge: async (visit) => {
      const { path, whole } = await ranged(visit);
      const answer = await visit.send({
        method: 'GET',
        path,
        headers: { Range: `bytes=${whole.content.length + 10}-` },
      });
      if (answer.status === 200) return warns('it is answered 200');
      if (answer.status !== 416) return deviates(`it is answered ${answer.status}`);
      const wanted = `bytes */${whole.content.length}`;
      return holdsIf(
        fieldOf(answer, 'Content-Range') === wanted,
        `Content-Range is ${fieldOf(answer, 'Content-Range')}`,
      );
    },
  },
  {
    id: 'range-ignored',
    group: 'ranges',
    title: 'A Range in an unknown unit, or that cannot be read, is ignored',
    section: 'RFC 9110 §14.2',
    level: 'must',
    judge: async (visit) => {
      const path = memberOf(visit);
      for (const Range of ['conducts=0-3', 'bytes=x-y']) {
        const { status } = await visit.send({ method: 'GET', path, headers: { Range } });
        if (status === 416) return warns(`Range: ${Range} is answered 416`);
        if (status !== 200) return deviates(`Range: ${Range} is answered ${status}`);
      }
      return holds;
    },
  },
  {
    id: 'range-several',
    group: 'ranges',
    title: 'Several ranges come as multipart/byteranges, or the whole comes',
    section: 'RFC 9110 §15.3.7.2',
    level: 'must',
    judge: async (visit) => {
      const { path } = await ranged(visit);
      const answer = await visit.send({ method: 'GET', path, headers: { Range: 'bytes=0-1,4-5' } });
      if (answer.status === 200) return holds;
      if (answer.status !== 206) return warns(`it is answered ${answer.status}`);
      const isMultipart = mediaTypeOf(answer) === 'multipart/byteranges';
      if (isMultipart && fieldOf(answer, 'Content-Range') !== undefined)
        return deviates('the multipart has a Content-Range');
      return holdsIf(
        isMultipart || fieldOf(answer, 'Content-Range') !== undefined,
        `it is ${mediaTypeOf(answer)}`,
      );
    },
  },
  {
    id: 'if-range-other',
    group: 'ranges',
    title: 'A range with another ETag in If-Range is answered with the whole',
    section: 'RFC 9110 §13.1.5',
    level: 'must',
    judge: async (visit) => {
      const { path } = await ranged(visit);
      const headers = { Range: 'bytes=0-3', 'If-Range': '"conduct-stale"' };
      const { status } = await visit.send({ method: 'GET', path, headers });
      return holdsIf(status === 200, `it is answered ${status}`);
    },
  },
  {
    id: 'if-range-current',
    group: 'ranges',
    title: 'A range with the current strong ETag in If-Range is answered 206',
    section: 'RFC 9110 §13.1.5',
    level: 'should',
    judge: async (visit) => {
      const { path, whole } = await ranged(visit);
      const tag = fieldOf(whole, 'ETag');
      if (tag === undefined || tag.startsWith('W/')) return cannotApply('there is no strong ETag');
      const { status } = await visit.send({
        method: 'GET',
        path,
        headers: { Range: 'bytes=0-3', 'If-Range': tag },
      });
      return holdsIf(status === 206, `it is answered ${status}`);
    },
  },
];

/** A member of which the server answers ranges, and the whole of it. */
async function ranged(visit: Visit): Promise<{ path: string; whole: Answer }> {
  const path = memberOf(visit);
  const whole = await visit.send({ method: 'GET', path });
  const part = await visit.send({ method: 'GET', path, headers: { Range: 'bytes=0-3' } });
  if (part.status === 200) throw new CannotApply('the server ignores Range, which it may');
  return { path, whole };
}

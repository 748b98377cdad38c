/** Conditional requests: validators, 304, 412, and the order of preconditions (RFC 9110 §8.8, §13). */
import { type Answer, fieldOf } from '../answer.ts';
import { type Clause, cannotApply, deviates, type Finding, holds, holdsIf, warns } from '../clause.ts';
import { changed } from '../document.ts';
import { mergePatch } from '../survey.ts';
import { changeOf } from '../target.ts';
import { CannotApply, type Member, type Visit } from '../visit.ts';
import { imfFixdate, memberOf, missingPath, sameState, turned } from './subjects.ts';

const entityTag = /^(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"$/;
const longAgo = 'Sat, 01 Jan 2000 00:00:00 GMT';
/** A tag that the server did not give, in the form of the one that it did: some give numbers or dates, and take nothing else. */
function staleOf(tag: string | undefined): string {
  const stale = tag?.replace(/^W\//, '').replace(/[a-z0-9]{1,4}(?="$)/i, turned);
  return stale === undefined || stale === tag ? '"conduct-stale"' : stale;
}

export const conditionClauses: readonly Clause[] = [
  {
    id: 'etag-present',
    group: 'conditions',
    title: 'A member has an ETag, so that a client can update it without losing the change of another',
    section: 'RFC 9110 §8.8.3',
    level: 'should',
    judge: async (visit) => {
      const answer = await visit.send({ method: 'GET', path: memberOf(visit) });
      return holdsIf(fieldOf(answer, 'ETag') !== undefined, 'GET of a member has no ETag');
    },
  },
  {
    id: 'etag-form',
    group: 'conditions',
    title: 'An ETag is a text in quotation marks, with W/ before it where it is weak',
    section: 'RFC 9110 §8.8.3',
    level: 'must',
    judge: async (visit) => {
      const tag = fieldOf(await visit.send({ method: 'GET', path: memberOf(visit) }), 'ETag');
      if (tag === undefined) return cannotApply('GET of a member has no ETag');
      return holdsIf(entityTag.test(tag), `ETag is ${tag}`);
    },
  },
  {
    id: 'etag-changes',
    group: 'conditions',
    title: 'The ETag changes with the representation',
    section: 'RFC 9110 §8.8.3',
    level: 'must',
    writes: true,
    judge: async (visit) => {
      const { path, tag } = await taggedMember(visit);
      await update(visit, path);
      const after = fieldOf(await visit.send({ method: 'GET', path }), 'ETag');
      return holdsIf(after !== tag, `ETag is ${tag} before and after a change`);
    },
  },
  {
    id: 'last-modified-form',
    group: 'conditions',
    title: 'Last-Modified is a date in the fixed format and not later than Date',
    section: 'RFC 9110 §8.8.2.1',
    level: 'must',
    judge: async (visit) => {
      const answer = await visit.send({ method: 'GET', path: memberOf(visit) });
      const modified = fieldOf(answer, 'Last-Modified');
      if (modified === undefined) return cannotApply('GET of a member has no Last-Modified');
      if (!imfFixdate.test(modified)) return deviates(`Last-Modified is ${modified}`);
      const date = Date.parse(fieldOf(answer, 'Date') ?? '');
      return holdsIf(!(Date.parse(modified) > date), `Last-Modified is ${modified}, later than Date`);
    },
  },
  ...notModified(),
  {
    id: 'not-modified-fields',
    group: 'conditions',
    title:
      'A 304 has a Date, the ETag, Cache-Control, Content-Location, Expires and Vary of the 200, and no content',
    section: 'RFC 9110 §15.4.5',
    level: 'must',
    judge: async (visit) => {
      const { path, tag, answer } = await tagged(visit);
      const same = await visit.send({ method: 'GET', path, headers: { 'If-None-Match': tag } });
      if (same.status !== 304)
        return cannotApply(`If-None-Match with the current ETag is answered ${same.status}`);
      if (same.rest.length > 0) return deviates(`the 304 is followed by ${same.rest.length} octets`);
      const other = ['ETag', 'Cache-Control', 'Content-Location', 'Expires', 'Vary'].filter(
        (name) => fieldOf(answer, name) !== fieldOf(same, name),
      );
      if (fieldOf(same, 'Date') === undefined) other.push('Date');
      return holdsIf(other.length === 0, `the 304 lacks or changes ${other.join(', ')}`);
    },
  },
  {
    id: 'if-modified-since',
    group: 'conditions',
    title:
      'If-Modified-Since with the Last-Modified of the representation is answered 304, with an earlier date 200',
    section: 'RFC 9110 §13.1.3',
    level: 'should',
    judge: async (visit) => {
      const { path, modified } = await dated(visit);
      const statusSince = async (date: string): Promise<number> =>
        (await visit.send({ method: 'GET', path, headers: { 'If-Modified-Since': date } })).status;
      const [same, earlier] = [await statusSince(modified), await statusSince(longAgo)];
      if (earlier !== 200) return deviates(`an earlier date is answered ${earlier}`);
      return holdsIf(same === 304, `it is answered ${same}`);
    },
  },
  {
    id: 'if-modified-since-ignored',
    group: 'conditions',
    title: 'If-Modified-Since is ignored beside If-None-Match, and where it is no date',
    section: 'RFC 9110 §13.1.3',
    level: 'must',
    judge: async (visit) => {
      const { path, modified, tag } = await dated(visit);
      const beside = { 'If-None-Match': staleOf(tag), 'If-Modified-Since': modified };
      for (const headers of [beside, { 'If-Modified-Since': 'yesterday' }]) {
        const { status } = await visit.send({ method: 'GET', path, headers });
        if (status !== 200) return deviates(`${Object.keys(headers).join(' with ')} is answered ${status}`);
      }
      if (tag === undefined) return holds;
      const headers = { 'If-None-Match': tag, 'If-Modified-Since': longAgo };
      const { status } = await visit.send({ method: 'GET', path, headers });
      return holdsIf(status === 304, `the current ETag beside an earlier date is answered ${status}`);
    },
  },
  ...changeConditions(),
  {
    id: 'if-match-missing',
    group: 'conditions',
    title: 'If-Match: * creates nothing where nothing is',
    section: 'RFC 9110 §13.1.1',
    level: 'must',
    writes: true,
    judge: async (visit) => {
      const path = missingPath(visit);
      const json = visit.sample();
      const { status } = await visit.send({ method: 'PUT', path, json, headers: { 'If-Match': '*' } });
      if (status < 300) visit.removeLater(path);
      return holdsIf(status >= 400, `PUT of a missing member with If-Match: * is answered ${status}`);
    },
  },
  {
    id: 'if-none-match-put',
    group: 'conditions',
    title: 'PUT with If-None-Match: * replaces nothing that exists',
    section: 'RFC 9110 §13.1.2',
    level: 'must',
    writes: true,
    judge: async (visit) => {
      const { path } = await visit.create();
      const sample = visit.sample();
      const plain = await visit.send({ method: 'PUT', path, json: sample });
      if (plain.status >= 300) return cannotApply(`PUT is answered ${plain.status}`);
      // Another content, because a replacement by the same one shows only where members have a time or a version.
      const json = changed(sample, changeOf(visit.target));
      const headers = { 'If-None-Match': '*' };
      return judgeRefusal(visit, path, () => visit.send({ method: 'PUT', path, json, headers }));
    },
  },
  {
    id: 'if-unmodified-since',
    group: 'conditions',
    title:
      'A change with If-Unmodified-Since is answered 412 where the date is before the last change, and made where it is not',
    section: 'RFC 9110 §13.1.4',
    level: 'must',
    writes: true,
    judge: async (visit) => {
      const { path } = await visit.create();
      const modified = fieldOf(await visit.send({ method: 'GET', path }), 'Last-Modified');
      if (modified === undefined) return cannotApply('a member has no Last-Modified');
      const refused = await refusedChange(visit, path, { 'If-Unmodified-Since': longAgo });
      if (refused.kind === 'deviates') return refused;
      const { status } = await update(visit, path, { 'If-Unmodified-Since': modified });
      return status < 300 ? refused : deviates(`the change with the date of the last is answered ${status}`);
    },
  },
  {
    id: 'if-match-first',
    group: 'conditions',
    title: 'If-Unmodified-Since is ignored beside If-Match',
    section: 'RFC 9110 §13.1.4',
    level: 'must',
    writes: true,
    judge: async (visit) => {
      const { path, tag } = await preciseMember(visit);
      const { status } = await update(visit, path, { 'If-Match': tag, 'If-Unmodified-Since': longAgo });
      return holdsIf(status < 300, `the change is answered ${status}`);
    },
  },
  {
    id: 'preconditions-last',
    group: 'conditions',
    title: 'A precondition is ignored where the request would fail without it',
    section: 'RFC 9110 §13.2.1',
    level: 'must',
    writes: true,
    judge: async (visit) => {
      const { path, tag } = await preciseMember(visit);
      const headers = { 'Content-Type': 'application/x-conduct-unknown' };
      const request = { method: 'PUT', path, content: 'conduct', headers };
      const plain = await visit.send(request);
      if (plain.status < 400) return cannotApply(`content of an unknown type is answered ${plain.status}`);
      const { status } = await visit.send({ ...request, headers: { ...headers, 'If-Match': staleOf(tag) } });
      return holdsIf(
        status === plain.status,
        `without If-Match it is answered ${plain.status}, with a stale one ${status}`,
      );
    },
  },
  {
    id: 'lost-update',
    group: 'conditions',
    title: 'Of changes at the same time with the same If-Match exactly one is made',
    section: 'RFC 9110 §13.1.1',
    level: 'must',
    writes: true,
    judge: async (visit) => {
      const { path, tag } = await preciseMember(visit);
      const answers = await Promise.all(
        Array.from({ length: 8 }, () => update(visit, path, { 'If-Match': tag })),
      );
      const made = answers.filter(({ status }) => status < 300).length;
      const others = answers
        .filter(({ status }) => status >= 300 && status !== 412)
        .map(({ status }) => status);
      if (made !== 1) return deviates(`${made} of 8 changes with one ETag were made`);
      return others.length === 0
        ? holds
        : warns(`changes that lost are answered ${others.join(', ')} instead of 412`);
    },
  },
];

/** If-None-Match in its forms: each is answered 304. */
function notModified(): readonly Clause[] {
  const cases = [
    ['if-none-match', 'If-None-Match with the current ETag is answered 304', (tag: string) => tag],
    [
      'if-none-match-list',
      'If-None-Match with a list that has the ETag is answered 304',
      (tag: string) => `${staleOf(tag)}, ${tag}`,
    ],
    ['if-none-match-any', 'If-None-Match: * is answered 304 where a representation exists', () => '*'],
    [
      'if-none-match-weak',
      'If-None-Match compares weakly: the weak form of the ETag is answered 304',
      (tag: string) => (tag.startsWith('W/') ? tag.slice(2) : `W/${tag}`),
    ],
  ] as const;
  const same = cases.map(
    ([id, title, write]): Clause => ({
      ...{ id, title, group: 'conditions', section: 'RFC 9110 §13.1.2' },
      level: 'must',
      judge: async (visit) => {
        const { path, tag } = await tagged(visit);
        const headers = { 'If-None-Match': write(tag) };
        const { status } = await visit.send({ method: 'GET', path, headers });
        return holdsIf(status === 304, `If-None-Match: ${headers['If-None-Match']} is answered ${status}`);
      },
    }),
  );
  const other: Clause = {
    id: 'if-none-match-other',
    group: 'conditions',
    title: 'If-None-Match with another ETag is answered 200',
    section: 'RFC 9110 §13.1.2',
    level: 'must',
    judge: async (visit) => {
      const { path, tag } = await tagged(visit);
      const stale = staleOf(tag);
      const { status } = await visit.send({ method: 'GET', path, headers: { 'If-None-Match': stale } });
      return holdsIf(status === 200, `If-None-Match: ${stale} is answered ${status}`);
    },
  };
  return [...same, other];
}

/** If-Match of a change in its forms. */
function changeConditions(): readonly Clause[] {
  const refused = [
    ['if-match-stale', 'A change with a stale If-Match is answered 412 and not made', staleOf],
    [
      'if-match-strong',
      'If-Match compares strongly: the weak form of the ETag is answered 412',
      (tag: string) => `W/${tag}`,
    ],
  ] as const;
  const made = [
    ['if-match-current', 'A change with the current ETag in If-Match is made', (tag: string) => tag],
    [
      'if-match-list',
      'A change with the current ETag in a list of If-Match is made',
      (tag: string) => `${staleOf(tag)}, ${tag}`,
    ],
    ['if-match-any', 'A change with If-Match: * is made where the member exists', () => '*'],
  ] as const;
  const rule = { group: 'conditions', section: 'RFC 9110 §13.1.1', level: 'must', writes: true } as const;
  return [
    ...made.map(
      ([id, title, write]): Clause => ({
        ...{ id, title, ...rule },
        judge: async (visit) => {
          const { path, tag } = await preciseMember(visit);
          const { status } = await update(visit, path, { 'If-Match': write(tag) });
          return holdsIf(status < 300, `If-Match: ${write(tag)} is answered ${status}`);
        },
      }),
    ),
    ...refused.map(
      ([id, title, write]): Clause => ({
        ...{ id, title, ...rule },
        judge: async (visit) => {
          const { path, tag } = await preciseMember(visit);
          return refusedChange(visit, path, { 'If-Match': write(tag) });
        },
      }),
    ),
    {
      ...{ id: 'if-match-delete', ...rule },
      title: 'A DELETE with a stale If-Match is answered 412 and removes nothing',
      judge: async (visit) => {
        const { path, tag } = await preciseMember(visit);
        const headers = { 'If-Match': staleOf(tag) };
        const { status } = await visit.send({ method: 'DELETE', path, headers });
        if ([405, 501].includes(status)) return cannotApply(`DELETE is answered ${status}`);
        const after = await visit.send({ method: 'GET', path });
        if (after.status !== 200) return deviates(`DELETE is answered ${status}, and the member is gone`);
        return status === 412 ? holds : warns(`the DELETE is refused with ${status} instead of 412`);
      },
    },
  ];
}

function refusedChange(
  visit: Visit,
  path: string,
  headers: Readonly<Record<string, string>>,
): Promise<Finding> {
  return judgeRefusal(visit, path, () => update(visit, path, headers));
}

/** Judges a change that a precondition forbids. */
async function judgeRefusal(visit: Visit, path: string, change: () => Promise<Answer>): Promise<Finding> {
  const before = await visit.send({ method: 'GET', path });
  const { status } = await change();
  const after = await visit.send({ method: 'GET', path });
  if (!sameState(before, after)) return deviates(`the change is answered ${status}, and it was made`);
  if (status === 412) return holds;
  // RFC 9110 §13.1.1 permits 2xx where the state is as the change would have it.
  if (status < 300)
    return warns(`the change is answered ${status} instead of 412, and makes no difference to the member`);
  return warns(`the change is refused with ${status} instead of 412`);
}

/** A PATCH of the target's change, or a PUT where a member takes no merge patch. */
export function update(
  visit: Visit,
  path: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const change = changeOf(visit.target);
  if (change === undefined) throw new CannotApply('the target has no change to make');
  const [type] = [mergePatch, 'application/json'].filter((each) => visit.survey.patchTypes.has(each));
  if (type !== undefined)
    return visit.send({ method: 'PATCH', path, json: change, headers: { ...headers, 'Content-Type': type } });
  return visit.send({ method: 'PUT', path, json: changed(visit.sample(), change), headers });
}

/** A member that stands, with its tag. */
async function tagged(visit: Visit): Promise<{ path: string; tag: string; answer: Answer }> {
  const path = memberOf(visit);
  const answer = await visit.send({ method: 'GET', path });
  const tag = fieldOf(answer, 'ETag');
  if (tag === undefined) throw new CannotApply('a member has no ETag');
  return { path, tag, answer };
}

async function dated(visit: Visit): Promise<{ path: string; modified: string; tag: string | undefined }> {
  const path = memberOf(visit);
  const answer = await visit.send({ method: 'GET', path });
  const modified = fieldOf(answer, 'Last-Modified');
  if (modified === undefined) throw new CannotApply('a member has no Last-Modified');
  return { path, modified, tag: fieldOf(answer, 'ETag') };
}

async function taggedMember(visit: Visit): Promise<Member & { readonly tag: string }> {
  const member = await visit.create();
  if (member.tag === undefined) throw new CannotApply('a member has no ETag');
  return { ...member, tag: member.tag };
}

/** A member whose tag is strong, so that If-Match can name it, and that can be changed. */
async function preciseMember(visit: Visit): Promise<Member & { readonly tag: string }> {
  const member = await taggedMember(visit);
  if (member.tag.startsWith('W/'))
    throw new CannotApply('the ETag of a member is weak, which If-Match never matches');
  const { status } = await update(visit, member.path);
  if (status >= 300) throw new CannotApply(`the target's change is answered ${status}`);
  const tag = fieldOf(await visit.send({ method: 'GET', path: member.path }), 'ETag');
  if (tag === undefined) throw new CannotApply('a member has no ETag');
  return { ...member, tag };
}

/** Writing: values that must come back as they were sent, every patch format, conditions, uniqueness, references, deletion. */
import { extras, hardExtras, integers, numbers, texts, times } from './awkward.ts';
import type { Answer, Pair } from './pair.ts';

const base = '/api/v1';
const samples = `${base}/samples`;
const pages = `${base}/pages`;
const groups = `${base}/groups`;
const mergePatch = 'application/merge-patch+json';
const jsonPatch = 'application/json-patch+json';

/** Every awkward value through POST, read back, replaced by PUT, patched, and deleted. */
export async function roundTrips(pair: Pair): Promise<void> {
  for (const text of texts) {
    const made = await pair.ask('POST', samples, 201, {
      json: { name: text, tags: [text], place: { city: text } },
    });
    await pair.ask('GET', made.location, 200);
  }
  const bodies = [
    ...numbers.map((number) => `{"name":"n","score":${number},"marks":[${number}]}`),
    ...integers.map((integer) => `{"name":"i","count":${integer}}`),
    ...times.map((time) => `{"name":"t","at":"${time}"}`),
    ...extras.map((extra) => `{"name":"e","extra":${extra}}`),
    ...['1e400', '0x1', '01', '.5', '+1', '1.', 'NaN', '""', 'true'].map(
      (odd) => `{"name":"o","score":${odd}}`,
    ),
    ...['1.5', '1e-1', '9007199254740993', '1e400'].map((odd) => `{"name":"o","count":${odd}}`),
    ...['"2026-02-30T00:00:00Z"', '"2026-01-31T12:00:00+01:00"', '"today"', '12'].map(
      (odd) => `{"name":"o","at":${odd}}`,
    ),
    '{"name":"x","name":"y"}',
    '{"name":"x","__proto__":{"flag":true}}',
    '{ "name" : "spaced" ,\n "extra" : [ 1 , 2 ] }',
    '\ufeff{"name":"marked"}',
    '',
    '[]',
    'null',
  ];
  for (const body of bodies) {
    const made = await pair.ask('POST', samples, 'any', {
      body,
      headers: { 'Content-Type': 'application/json' },
    });
    if (made.status !== 201) continue;
    await pair.ask('GET', made.location, 200);
    await pair.ask('PUT', made.location, 'any', { body, headers: { 'Content-Type': 'application/json' } });
    const patched = {
      json: { extra: { patched: true }, note: null },
      headers: { 'Content-Type': mergePatch },
    };
    await pair.ask('PATCH', made.location, 'any', patched);
    await pair.ask('DELETE', made.location, 'any', { headers: { Prefer: 'return=representation' } });
  }
}

/** What some part of a store cannot take: as a value that is indexed, in a list, as a name, and where nothing looks at it. */
export async function chokes(pair: Pair): Promise<void> {
  const headers = { 'Content-Type': 'application/json' };
  const write = async (body: string) => {
    const made = await pair.ask('POST', samples, 'any', { body, headers });
    const plain = await pair.ask('POST', samples, 201, { json: { name: 'plain' } });
    await pair.ask('PUT', plain.location, 'any', { body, headers });
    await pair.ask('PATCH', plain.location, 'any', { body, headers: { 'Content-Type': mergePatch } });
    if (made.status === 201) await pair.ask('GET', made.location, 200);
    await pair.ask('GET', plain.location, 200);
  };
  for (const hard of hardExtras) await write(`{"name":"hard","extra":${hard}}`);
  for (const odd of ['"\\u0000"', '"a\\u0000b"', '"\\ud800"', '"\\udc00\\ud800"', '"\\ud83d\\ude00"']) {
    await write(`{"name":${odd}}`);
    await write(`{"name":"odd","code":${odd}}`);
    await write(`{"name":"odd","tags":[${odd}],"place":{"city":${odd}}}`);
    await pair.ask('POST', groups, 'any', { body: `{"name":"g","parentId":${odd}}`, headers });
    await pair.ask('POST', `${samples}/bulk-delete`, 'any', { body: `{"ids":[${odd}]}`, headers });
    await pair.ask('QUERY', samples, 'any', { body: `{"q":${odd}}`, headers });
    await pair.ask('QUERY', samples, 'any', { body: `{"filter":{"name":{"like":${odd}}}}`, headers });
    await pair.ask('QUERY', samples, 'any', { body: `{"filter":{"tags":{"in":[${odd}]}}}`, headers });
  }
  const form = { 'Content-Type': 'application/x-www-form-urlencoded' };
  await pair.ask('POST', samples, 'any', { body: 'name=a%00b&tags=%00', headers: form });
  await pair.ask('POST', samples, 'any', { body: 'name=%ED%A0%80', headers: form });
  await pair.ask('PUT', `${pages}/choke`, 'any', { body: 'title=%00', headers: form });
  await pair.ask('POST', samples, 'any', {
    json: { name: 'key' },
    headers: { 'Idempotency-Key': '"\u00e9"' },
  });
  await pair.ask('GET', `${samples}?limit=1000&sort=name`, 200);
  await pair.ask('GET', `${base}/events?limit=1000`, 200);
}

/** Texts around what an indexed value may hold, and ids around what an id may be. */
export async function bounds(pair: Pair): Promise<void> {
  for (const length of [255, 600, 666, 667, 999, 1000, 1001, 1999, 2000, 2001, 2704, 8000, 100_000]) {
    for (const character of ['x', 'é', '😀']) {
      const value = character.repeat(Math.floor(length / character.length));
      await pair.ask('POST', samples, 'any', { json: { name: value } });
      await pair.ask('POST', samples, 'any', { json: { name: 'long', code: value } });
      await pair.ask('POST', samples, 'any', { json: { name: 'long', tags: [value], extra: value } });
    }
    await pair.ask('PUT', `${pages}/${'i'.repeat(length)}`, 'any', { json: { title: 'long id' } });
  }
  for (const id of ['a', 'A', 'a.b', '~', '_', '-', '..', '%C3%A9', 'a%2Fb', '0', 'null', 'a%00', 'a~b']) {
    await pair.ask('PUT', `${pages}/${id}`, 'any', { json: { title: id } });
    await pair.ask('GET', `${pages}/${id}`, 'any');
  }
  await pair.ask('GET', `${pages}?limit=1000&sort=id&fields=id`, 200);
  await pair.ask('GET', `${pages}?limit=1000&sort=-id&fields=id`, 200);
  const deep = `${'['.repeat(60)}${']'.repeat(60)}`;
  await pair.ask('POST', samples, 201, {
    body: `{"name":"deep","extra":${deep}}`,
    headers: { 'Content-Type': 'application/json' },
  });
  const wide = Object.fromEntries(Array.from({ length: 3000 }, (_, at) => [`k${at}`, at]));
  await pair.ask('POST', samples, 201, { json: { name: 'wide', extra: wide } });
}

export async function patches(pair: Pair): Promise<void> {
  const first = {
    name: 'patched',
    score: 1,
    tags: ['a', 'b'],
    place: { city: 'x', geo: { height: 1 } },
    extra: { list: [1, 2] },
  };
  const made = await pair.ask('POST', samples, 201, { json: first });
  const at = made.location;
  const merge = (json: unknown) =>
    pair.ask('PATCH', at, 'any', { json, headers: { 'Content-Type': mergePatch } });
  const operate = (json: unknown) =>
    pair.ask('PATCH', at, 'any', { json, headers: { 'Content-Type': jsonPatch } });
  await merge({ score: -0, place: { geo: null } });
  await merge({ note: null, tags: ['ä', ''] });
  await merge({ name: null });
  await merge({ score: 'ten', unknown: 1 });
  await merge({ extra: { list: null, deep: { er: [null] } } });
  await merge({ id: 'other' });
  await merge({});
  await operate([
    { op: 'add', path: '/tags/-', value: 'c' },
    { op: 'move', from: '/tags/0', path: '/tags/1' },
  ]);
  await operate([
    { op: 'test', path: '/score', value: 0 },
    { op: 'replace', path: '/score', value: 5e-324 },
  ]);
  await operate([{ op: 'test', path: '/score', value: 99 }]);
  await operate([{ op: 'remove', path: '/nowhere' }]);
  await operate([{ op: 'copy', from: '/place', path: '/extra/~1~0' }]);
  await operate([{ op: 'replace', path: '/createdAt', value: '2020-01-01T00:00:00Z' }]);
  await operate({ op: 'add' });
  await pair.ask('PATCH', at, 'any', { json: { flag: true } });
  await pair.ask('PATCH', at, 'any', {
    body: 'flag=false&score=2.50',
    headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
  });
  await pair.ask('PATCH', at, 415, { body: 'flag', headers: { 'Content-Type': 'text/plain' } });
  await pair.ask('PATCH', `${samples}/nothing`, 404, { json: { flag: true } });
  for (const prefer of ['return=minimal', 'return=representation', 'return=minimal, handling=strict']) {
    await pair.ask('PATCH', at, 'any', { json: { count: prefer.length }, headers: { Prefer: prefer } });
    await pair.ask('PUT', at, 'any', { json: { name: prefer }, headers: { Prefer: prefer } });
    await pair.ask('POST', samples, 201, { json: { name: prefer }, headers: { Prefer: prefer } });
  }
}

export async function conditions(pair: Pair): Promise<void> {
  const made = await pair.ask('POST', samples, 201, { json: { name: 'conditional' } });
  const at = made.location;
  const old = made.etag;
  const next = await pair.ask('PATCH', at, 200, { json: { count: 1 }, headers: { 'If-Match': old } });
  const modified = next.field('Last-Modified') ?? '';
  const fields: readonly Readonly<Record<string, string>>[] = [
    { 'If-Match': old },
    { 'If-Match': `${old}, ${next.etag}` },
    { 'If-Match': '*' },
    { 'If-Match': `W/${next.etag}` },
    { 'If-Match': 'broken' },
    { 'If-None-Match': next.etag },
    { 'If-None-Match': `W/${next.etag}` },
    { 'If-None-Match': '*' },
    { 'If-Modified-Since': modified },
    { 'If-Modified-Since': 'Thu, 01 Jan 1970 00:00:00 GMT' },
    { 'If-Unmodified-Since': modified },
    { 'If-Unmodified-Since': 'Thu, 01 Jan 1970 00:00:00 GMT' },
  ];
  for (const headers of fields) {
    for (const method of ['GET', 'HEAD']) await pair.ask(method, at, 'any', { headers });
  }
  for (const headers of fields) {
    await pair.ask('PATCH', at, 'any', { json: { count: 2 }, headers });
    await pair.ask('PUT', at, 'any', { json: { name: 'conditional', count: 3 }, headers });
    await pair.ask('PUT', `${pages}/absent`, 'any', { json: { title: 'made' }, headers });
    await pair.ask('DELETE', `${samples}/nothing`, 'any', { headers });
  }
  await pair.ask('DELETE', at, 412, { headers: { 'If-Match': old } });
  await pair.ask('DELETE', at, 204, { headers: { 'If-Match': '*' } });
  await pair.ask('DELETE', at, 404);
  await pair.ask('GET', at, 404);
}

/** Unique values that are equal and that only look so, and values of rows that were deleted. */
export async function uniqueness(pair: Pair): Promise<void> {
  const codes = ['u', 'U', 'u ', 'ü', 'u\u0308', 'ﬁ', 'fi', '', '\uffff', '\u{10000}', '1', '01'];
  const locations: string[] = [];
  for (const code of codes) {
    locations.push((await pair.ask('POST', samples, 201, { json: { name: 'unique', code } })).location);
    await pair.ask('POST', samples, 409, { json: { name: 'again', code } });
  }
  const asJson = { 'Content-Type': 'application/json' };
  for (const serial of [
    '7',
    '7.0',
    '70e-1',
    '-0',
    '0',
    '0.1',
    '0.10000000000000001',
    '1e21',
    '1000000000000000000000',
  ]) {
    await pair.ask('POST', samples, 'any', { body: `{"name":"serial","serial":${serial}}`, headers: asJson });
  }
  const [one = '', other = ''] = locations;
  await pair.ask('PATCH', one, 409, { json: { code: 'U' } });
  await pair.ask('PATCH', one, 200, { json: { code: 'u' } });
  await pair.ask('PUT', one, 409, { json: { name: 'x', code: 'U', serial: 7 } });
  await pair.ask('DELETE', other, 204);
  await pair.ask('PATCH', one, 200, { json: { code: 'U' } });
  // A page that is softly deleted gives its slug back.
  await pair.ask('PUT', `${pages}/first`, 201, { json: { title: 'First', slug: 's' } });
  const made = await pair.ask('GET', `${pages}/first`, 200);
  await pair.ask('PUT', `${pages}/second`, 409, { json: { title: 'Second', slug: 's' } });
  await pair.ask('DELETE', `${pages}/first`, 428);
  await pair.ask('DELETE', `${pages}/first`, 204, { headers: { 'If-Match': made.etag } });
  await pair.ask('DELETE', `${pages}/first`, 404, { headers: { 'If-Match': made.etag } });
  await pair.ask('PUT', `${pages}/second`, 201, { json: { title: 'Second', slug: 's' } });
  const second = await pair.ask('GET', `${pages}/second`, 200);
  await pair.ask('PUT', `${pages}/first`, 'any', { json: { title: 'First again', slug: 's' } });
  await pair.ask('PUT', `${pages}/first`, 'any', { json: { title: 'First again', slug: 't' } });
  await pair.ask('PUT', `${pages}/second`, 'any', {
    json: { title: 'Second', slug: 't' },
    headers: { 'If-Match': second.etag },
  });
  await pair.ask('GET', `${pages}?limit=100`, 200);
  await pair.ask('POST', groups, 201, { json: { name: 'Only' } });
  await pair.ask('POST', groups, 409, { json: { name: 'Only' } });
  await pair.ask('POST', groups, 201, { json: { name: 'ONLY' } });
}

export async function references(pair: Pair): Promise<void> {
  const group = await pair.ask('POST', groups, 201, { json: { name: 'Parent' } });
  const id = String(group.json().id);
  const child = await pair.ask('POST', groups, 201, { json: { name: 'Child', parentId: id } });
  await pair.ask('POST', groups, 422, { json: { name: 'Orphan', parentId: 'nobody' } });
  const one = await pair.ask('POST', samples, 201, { json: { name: 'in', groupId: id } });
  await pair.ask('POST', samples, 201, { json: { name: 'in too', groupId: id } });
  await pair.ask('POST', samples, 422, { json: { name: 'dangling', groupId: 'nobody' } });
  await pair.ask('PUT', `${pages}/referring`, 201, { json: { title: 'Referring', groupId: id } });
  await pair.ask('PATCH', one.location, 422, { json: { groupId: 'nobody' } });
  await pair.ask('DELETE', group.location, 409);
  await pair.ask('DELETE', child.location, 204);
  await pair.ask('DELETE', group.location, 409);
  await pair.ask('PATCH', group.location, 'any', { json: { parentId: id } });
  await pair.ask('GET', `${samples}?groupId=${id}&sort=-score`, 200);
  await pair.ask('DELETE', one.location, 204);
  await pair.ask('DELETE', group.location, 409, { headers: { Accept: 'application/problem+json' } });
}

export async function bulkDeletes(pair: Pair): Promise<void> {
  const ids: string[] = [];
  for (let at = 0; at < 12; at += 1) {
    ids.push(
      String((await pair.ask('POST', samples, 201, { json: { name: `bulk ${at}`, count: at } })).json().id),
    );
  }
  const remove = (json: unknown) => pair.ask('POST', `${samples}/bulk-delete`, 'any', { json });
  await remove({ ids: ids.slice(0, 3) });
  await remove({ ids: [...ids.slice(2, 5), 'nothing', ids[3], ids[4]] });
  await remove({ ids: [] });
  await remove({ ids: 'all' });
  await remove({ ids: [1] });
  await remove({ ids: Array.from({ length: 1001 }, (_, at) => `x${at}`) });
  await remove({});
  await pair.ask('POST', `${groups}/bulk-delete`, 'any', { json: { ids: await groupIds(pair) } });
  await pair.ask('POST', `${pages}/bulk-delete`, 'any', { json: { ids: ['second', 'nothing'] } });
  await pair.ask('GET', `${samples}?name[like]=bulk%25`, 200, { headers: { Prefer: 'count=exact' } });
}

async function groupIds(pair: Pair): Promise<readonly unknown[]> {
  const { items } = (await pair.ask('GET', `${groups}?limit=100`, 200)).json() as { items: { id: string }[] };
  return items.map(({ id }) => id);
}

export async function keysAndPreferences(pair: Pair): Promise<void> {
  const create = (key: string, json: unknown, more: Readonly<Record<string, string>> = {}) =>
    pair.ask('POST', samples, 'any', { json, headers: { 'Idempotency-Key': key, ...more } });
  const made = await create('"one"', { name: 'once', code: 'once' });
  await create('"one"', { name: 'once', code: 'once' });
  await create('"one"', { name: 'other' });
  await create('"two"', { name: 'refused', code: 'once' });
  await create('"two"', { name: 'refused', code: 'once' });
  await create('"three"', { score: 'wrong' });
  await create('broken key', { name: 'x' });
  await create(`"${'k'.repeat(300)}"`, { name: 'x' });
  const patch = { json: { count: 5 }, headers: { 'Idempotency-Key': '"patch"' } };
  for (let times = 0; times < 2; times += 1) await pair.ask('PATCH', made.location, 'any', patch);
  await operations(pair, made);
}

async function operations(pair: Pair, made: Answer): Promise<void> {
  const later = { Prefer: 'respond-async' };
  const asked: readonly (readonly [string, string, unknown, Readonly<Record<string, string>>?])[] = [
    ['POST', samples, { name: 'async', code: 'async' }],
    ['POST', samples, { name: 'async', code: 'async' }],
    ['PATCH', made.location, { note: 'async' }],
    ['PUT', `${pages}/async`, { title: 'Async' }],
    ['DELETE', made.location, undefined],
    ['DELETE', made.location, undefined],
    ['POST', samples, { name: 'async' }, { 'Idempotency-Key': '"later"' }],
  ];
  for (const [method, path, json, more] of asked) {
    const headers = { ...later, ...more };
    const answer = await pair.ask(method, path, 'any', { headers, ...(json === undefined ? {} : { json }) });
    if (answer.status !== 202) continue;
    await pair.ended(answer.location);
    const ended = await pair.ask('GET', answer.location, 'any');
    if (ended.location !== '') await pair.ask('GET', ended.location, 'any');
    await pair.ask('GET', `${answer.location}/result`, 'any');
  }
  await pair.ask('GET', '/api/v1/operations', 'any');
}

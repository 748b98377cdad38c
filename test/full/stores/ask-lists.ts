/** Lists: every order walked to its end and back, every operator on every kind of field, search, selection, counts. */
import { numbers, texts, times } from './awkward.ts';
import type { Answer, Pair } from './pair.ts';

const path = '/api/v1/samples';

const sorts = [
  ...[
    'name',
    'score',
    'count',
    'flag',
    'at',
    'note',
    'place.city',
    'place.geo.height',
    'kind',
    'code',
    'serial',
  ],
  ...[
    'id',
    'createdAt',
    'updatedAt',
    'groupId,score',
    'flag,name',
    'kind,count,name',
    'score,-name',
    '-flag,count',
  ],
  ...['place.Odd-name_1', 'name,score,count,flag,at'],
];

/** Each order upwards and downwards by cursor, and by page numbers. */
export async function walkOrders(pair: Pair): Promise<void> {
  for (const sort of sorts) {
    for (const order of ['asc', 'desc']) {
      const query = `sort=${encodeURIComponent(sort)}&order=${order}&fields=id,name`;
      let answer = await pair.ask('GET', `${path}?${query}&limit=19`, 200);
      answer = await follow(pair, answer, 'next');
      await follow(pair, answer, 'prev');
      await pair.ask('GET', `${path}?${query}&limit=23&page=3`, 200);
    }
    pair.settle();
  }
  let answer = await pair.ask('GET', `${path}?limit=3&sort=name`, 200, {
    headers: { Prefer: 'count=exact' },
  });
  answer = await follow(pair, answer, 'next');
  await pair.ask('GET', answer.link('first') ?? '', 200);
  for (const page of [1, 2, 27, 28, 1000]) await pair.ask('GET', `${path}?limit=3&page=${page}`, 200);
  // Walked with a filter that fixes the leading key of an index, and with one that ranges over it.
  for (const filter of [
    'flag=true',
    'kind=plain',
    'score[gte]=0',
    'name[lt]=b&name[gte]=A',
    'note[null]=true',
  ]) {
    for (const sort of ['name', '-name', 'score', '-score', 'count,name']) {
      answer = await pair.ask('GET', `${path}?${filter}&sort=${sort}&limit=7&fields=name,score`, 200);
      answer = await follow(pair, answer, 'next');
      await follow(pair, answer, 'prev');
    }
  }
}

async function follow(pair: Pair, from: Answer, rel: string): Promise<Answer> {
  let answer = from;
  for (let target = answer.link(rel); target !== undefined; target = answer.link(rel)) {
    answer = await pair.ask('GET', target, 200);
  }
  return answer;
}

const ordered = ['eq', 'ne', 'gt', 'gte', 'lt', 'lte'];

/** What each field is compared with. */
const compared: readonly (readonly [
  field: string,
  operators: readonly string[],
  values: readonly string[],
])[] = [
  ['name', ordered, texts.filter((_, at) => at % 3 === 0)],
  ['note', ordered, ['a', 'é', '\uffff', '\u{10000}']],
  ['score', ordered, numbers.filter((_, at) => at % 2 === 0)],
  ['score', ['eq', 'in'], numbers],
  ['count', ordered, ['0', '1', '1000', '9007199254740991', '-1']],
  ['flag', ordered, ['true', 'false']],
  ['at', ordered, [...times, '2026-01-31']],
  ['place.city', ordered, ['a', 'É', '😀']],
  ['place.geo.height', ordered, ['0', '5e-324', '1e21']],
  ['place.Odd-name_1', ordered, ['odd 4', 'ODD 4']],
  ['kind', ordered, ['plain', 'odd']],
  ['createdAt', ordered, ['2026-01-31T12:00:00.999Z', '2026-01-31']],
  ['tags', ['eq', 'ne', 'in'], ['a', 'A', '', 'é', '%', '😀', 'a\\b']],
  ['marks', ['eq', 'ne', 'in'], ['0', '-0', '1e21', '5e-324', '1.5', '2']],
  ['switches', ['eq', 'ne'], ['true', 'false']],
  ['code', ordered, ['code a', 'code B']],
  ['serial', ordered, ['0.1', '1.3']],
];

const patterns = [
  'a%',
  '%a%',
  '%A',
  '_',
  '__',
  'a\\%b',
  'a\\_b',
  '%\\\\%',
  'É%',
  '%é%',
  '%',
  '',
  '_b',
  '%\u{10000}%',
  '%😀%',
];

export async function filterLists(pair: Pair): Promise<void> {
  for (const [field, operators, values] of compared) {
    for (const operator of operators) {
      for (const value of values)
        await list(pair, `${encodeURIComponent(field)}[${operator}]=${encodeURIComponent(value)}`);
    }
    for (const empty of ['true', 'false']) await list(pair, `${encodeURIComponent(field)}[null]=${empty}`);
    pair.settle();
  }
  for (const field of ['name', 'note', 'place.city']) {
    for (const pattern of patterns) await list(pair, `${field}[like]=${encodeURIComponent(pattern)}`);
  }
  await list(pair, 'name=a&name=B&name=%C3%A9');
  await list(pair, 'score[in]=0,1,5e-324,1e21&flag[ne]=true');
  await list(pair, 'name[in]=a,b,A,B,%F0%90%80%80&sort=-name');
  await list(pair, 'tags=a&tags[ne]=A&score[gt]=-1');
  await list(pair, 'score[gt]=0&score[lt]=1&count[gte]=0&sort=count,-score');
}

export async function search(pair: Pair): Promise<void> {
  const terms = [
    'a',
    'A',
    'é',
    'E\u0301',
    'ß',
    'SS',
    'İ',
    'i',
    'ﬁ',
    'FI',
    '%',
    '_',
    '\\',
    '"',
    "'",
    '😀',
    '日',
    'a b',
    'odd code',
  ];
  for (const term of terms) await list(pair, `q=${encodeURIComponent(term)}`);
  await list(pair, 'q=a&flag=true&sort=-name');
  await pair.ask('GET', `${path}?q=code&limit=3`, 200, { headers: { Prefer: 'count=exact' } });
}

export async function selectAndCount(pair: Pair): Promise<void> {
  for (const fields of [
    'id',
    'name,score',
    'place',
    'place.city',
    'extra',
    'updatedAt,id',
    'tags,marks,switches',
  ]) {
    await pair.ask('GET', `${path}?fields=${fields}&limit=1000`, 200);
  }
  for (const query of [
    '',
    'flag=true',
    'name[like]=a%25',
    'tags=a',
    'q=a',
    'score[null]=true',
    'name=nothing',
  ]) {
    const counted = { headers: { Prefer: 'count=exact' } };
    await pair.ask('GET', `${path}?${query}&limit=2`, 200, counted);
    await pair.ask('HEAD', `${path}?${query}&limit=2`, 200, counted);
  }
  const answer = await pair.ask('GET', `${path}?limit=1000`, 200);
  await pair.ask('GET', `${path}?limit=1000`, 304, { headers: { 'If-None-Match': answer.etag } });
  await pair.ask('GET', `${path}?limit=1000`, 200, { headers: { 'Accept-Encoding': 'gzip' } });
  await pair.ask('GET', `${path}?limit=1000`, 200, {
    headers: { Accept: 'application/json;q=0.1, */*;q=0' },
  });
  await pair.ask('GET', path, 406, { headers: { Accept: 'text/html' } });
  await pair.ask('OPTIONS', path, 204);
}

/** Answers 200 with all that fits, in one page: what the page does is asked elsewhere. */
async function list(pair: Pair, query: string): Promise<void> {
  await pair.ask('GET', `${path}?${query}&limit=1000&fields=id,name`, 200);
}

/** The rows of every-type.config.ts under a declaration that calls texts numbers, numbers texts and objects scalars. */
import { fixture } from './chapters.ts';
import type { Pair } from './pair.ts';

const samples = '/api/v1/samples';

const sorts =
  'name -name score -score count,score -count,-score flag -at at place extra -extra tags kind.name';

const filters = `
  name=1 name[ne]=1 name[gt]=-1 name[null]=true name[null]=false score=1 score[ne]=1 score[null]=false score[like]=%25
  score[gte]= count=true count[ne]=true flag=1 flag[gte]=0 flag[null]=true at[lt]=5 at[null]=false note=a note[ne]=a
  tags=a tags[like]=%25a%25 tags[null]=true marks=1 marks[ne]=0 place=x place[ne]=x place[null]=true extra[gt]=1
  extra=12.5 extra[null]=false kind.name=plain kind.name[null]=true q=a q=1`;

const conditions = [
  ...['name > 0', 'NOT name > 0', 'score = 1', "score = '1'", 'count', 'NOT count', 'flag IS NULL'],
  ...["'a' = ANY(note)", "NOT 'a' = ANY(note)", "place LIKE '%'", 'extra BETWEEN 0 AND 100'],
];

export async function readRetyped(pair: Pair): Promise<void> {
  await pair.restart(fixture('retyped'));
  const queries = [...sorts.split(' ').map((sort) => `sort=${sort}`), ...filters.trim().split(/\s+/)];
  for (const query of queries) {
    await pair.ask('GET', `${samples}?${query}&limit=1000&fields=id,name`, 'any');
    await pair.ask('GET', `${samples}?${query}&limit=9`, 'any', { headers: { Prefer: 'count=exact' } });
  }
  for (const condition of conditions) {
    const body = `SELECT id FROM samples WHERE ${condition} ORDER BY id LIMIT 1000`;
    await pair.ask('QUERY', samples, 'any', { body, headers: { 'Content-Type': 'application/sql' } });
  }
  const { items } = (await pair.ask('GET', `${samples}?limit=5`, 200)).json() as { items: { id: string }[] };
  for (const { id } of items) {
    await pair.ask('PATCH', `${samples}/${id}`, 'any', { json: { name: 5 } });
    await pair.ask('PUT', `${samples}/${id}`, 'any', { json: { name: 6, score: 'now text' } });
    await pair.ask('DELETE', `${samples}/${id}`, 'any');
  }
}

/** Idempotency-Key (draft-ietf-httpapi-idempotency-key-header-07) and RateLimit fields. */
import { type Answer, fieldOf, listOf } from '../answer.ts';
import { type Clause, cannotApply, deviates, holds, holdsIf, warns } from '../clause.ts';
import { randomToken } from '../target.ts';
import { CannotApply, memberPathOf, type Visit } from '../visit.ts';
import { memberOf } from './subjects.ts';

const draft = 'draft-ietf-httpapi-idempotency-key-header-07';

export const idempotencyClauses: readonly Clause[] = [
  {
    id: 'key-repeats',
    group: 'idempotency',
    title:
      'A POST that is repeated with its Idempotency-Key creates nothing and gets the answer of the first',
    section: `${draft} §2.6`,
    level: 'must',
    writes: true,
    judge: async (visit) => {
      const { first, second } = await repeated(visit);
      return holdsIf(
        first.status === second.status,
        `the first is answered ${first.status}, the second ${second.status}`,
      );
    },
  },
  {
    id: 'key-other-content',
    group: 'idempotency',
    title: 'An Idempotency-Key with another content is refused with 422',
    section: `${draft} §2.7`,
    level: 'should',
    writes: true,
    judge: async (visit) => {
      const { key } = await repeated(visit);
      const { status } = await visit.post({ headers: { 'Idempotency-Key': key } });
      if (status < 300) return deviates(`it is answered ${status}`);
      return holdsIf(status === 422, `it is answered ${status}`);
    },
  },
  {
    id: 'key-at-once',
    group: 'idempotency',
    title: 'Of POSTs at the same time with one Idempotency-Key one creates; the others get its answer or 409',
    section: `${draft} §2.6`,
    level: 'must',
    writes: true,
    judge: async (visit) => {
      await repeated(visit);
      const json = visit.sample();
      const headers = { 'Idempotency-Key': `"conduct-${randomToken()}"` };
      const answers = await Promise.all(Array.from({ length: 4 }, () => visit.post({ json, headers })));
      const created = answers.filter(({ status }) => status < 300);
      const made = new Set(created.map((answer) => memberPathOf(visit.target, answer)));
      if (made.size !== 1) return deviates(`${made.size} members were created`);
      const other = answers.find(({ status }) => status >= 300 && status !== 409);
      return other === undefined ? holds : warns(`a request that came second is answered ${other.status}`);
    },
  },
  {
    id: 'rate-limit-form',
    group: 'idempotency',
    title: 'RateLimit fields, where they are sent, say how much is left and until when',
    section: 'draft-ietf-httpapi-ratelimit-headers-10 §3',
    level: 'must',
    judge: async (visit) => {
      const answer = await visit.send({ method: 'GET', path: memberOf(visit) });
      const [limit, policy] = [fieldOf(answer, 'RateLimit'), fieldOf(answer, 'RateLimit-Policy')];
      if (limit === undefined && policy === undefined) return cannotApply('answers have no RateLimit fields');
      if (limit !== undefined && !/(?:^|[;, ])(?:r|remaining)=\d+/.test(limit))
        return deviates(`RateLimit is ${limit}`);
      return holdsIf(policy === undefined || /(?:[;, ])q=\d+/.test(policy), `RateLimit-Policy is ${policy}`);
    },
  },
];

/** Two POSTs with one key and content. @throws CannotApply where both create */
async function repeated(visit: Visit): Promise<{ key: string; first: Answer; second: Answer }> {
  const key = `"conduct-${randomToken()}"`;
  const json = visit.sample();
  const headers = { 'Idempotency-Key': key };
  const first = await visit.post({ json, headers });
  if (first.status >= 300)
    throw new CannotApply(`the sample with an Idempotency-Key is answered ${first.status}`);
  const second = await visit.post({ json, headers });
  const isRefused = second.status === 409 || second.status === 422;
  const isUnique = isRefused && !listOf(second, 'Content-Type').join().includes('json');
  const [one, other] = [first, second].map((answer) => memberPathOf(visit.target, answer));
  if (isUnique || (second.status < 300 && one !== other))
    throw new CannotApply('the server does not read Idempotency-Key');
  return { key, first, second };
}

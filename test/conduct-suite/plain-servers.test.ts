/** The suite against servers that are no API, and against the simplest one, which ignores conditions: what it says, and how it ends. */
import assert from 'node:assert/strict';
import { createServer, type RequestListener } from 'node:http';
import { describe, it, type TestContext } from 'node:test';
import { apiClauses } from '../../conduct/all-clauses.ts';
import { judgeApi, selectClauses } from '../../conduct/judge.ts';
import { describedCollections } from '../../conduct/openapi.ts';
import { findTargets, TargetMistake } from '../../conduct/target.ts';
import { NoAnswer } from '../../conduct/visit.ts';
import { listen } from '../harness/listening.ts';
import { plainNotes } from './plain-notes.ts';

const run = { mayWrite: true, progress: () => undefined };

type Sent = Readonly<Record<string, unknown>>;

async function judge(
  context: TestContext,
  listener: RequestListener,
  ids: readonly string[] = [],
  wrap: (sent: Sent) => Sent = (sent) => sent,
) {
  const { url } = await listen(createServer(listener), context);
  const [found] = await findTargets(`${url}/notes`, {});
  assert.ok(found !== undefined);
  const selected = selectClauses(apiClauses, ids);
  assert.ok('clauses' in selected);
  const sample = wrap({ title: 'a note {random}' });
  return judgeApi([{ ...found, sample, change: wrap({ title: 'another' }) }], selected.clauses, run);
}

describe('the suite of conduct, where nothing can be judged', () => {
  const elsewhere = { Location: 'https://elsewhere.example/notes' };
  const cases = [
    ['redirects', 302, elsewhere, /give the URL that it leads to, https:\/\/elsewhere\.example\/notes/],
    ['has no such path', 404, {}, /give the URL of a collection, or --target FILE/],
    ['asks for credentials', 401, {}, /give credentials that may read it/],
    ['fails', 500, {}, /the collection cannot be read/],
  ] as const;
  for (const [title, status, fields, message] of cases)
    it(`says so of a server that ${title}`, async (context) => {
      const judging = judge(context, (_request, response) => response.writeHead(status, fields).end());
      await assert.rejects(judging, (error) => {
        assert.ok(error instanceof NoAnswer);
        assert.match(error.message, message);
        assert.match(error.message, new RegExp(`^GET /notes is answered ${status}: `));
        return true;
      });
    });

  it('ends at the first path that a server does not answer', async (context) => {
    let count = 0;
    const judging = judge(context, (request) => {
      count += 1;
      request.socket.destroy();
    });
    await assert.rejects(judging, TargetMistake);
    assert.equal(count, 1);
  });
});

describe('the suite of conduct, at an API without conditions, times and versions', () => {
  it('sees a PUT with If-None-Match: * that replaces a member', async (context) => {
    const { clauses } = await judge(context, plainNotes(), ['if-none-match-put']);
    assert.deepEqual(
      clauses.map(({ verdict, why }) => [verdict, why]),
      [['fails', 'the change is answered 200, and it was made']],
    );
  });
});

describe('the suite of conduct, at an API that wraps documents', () => {
  it('finds them, compares what is in the wrapper, and removes them', async (context) => {
    const ids = ['put-replaces', 'put-idempotent', 'delete-removes', 'created-stays'];
    const wrap = (sent: Sent): Sent => ({ data: sent });
    const { clauses, left } = await judge(context, plainNotes({ wrapper: 'data' }), ids, wrap);
    assert.deepEqual(
      clauses.map(({ id, verdict, why }) => [id, verdict, why]),
      ids.map((id) => [id, 'holds', '']),
    );
    assert.deepEqual(left, []);
  });
});

describe('a sample document by an OpenAPI document', () => {
  const title = { type: 'string', maxLength: 5 };
  const reference = { $ref: '#/components/schemas/Note' };
  const names = Array.from({ length: 30 }, (_, index) => `member${index}`);
  const cases = [
    [
      'that contains itself by allOf',
      { required: ['title'], allOf: [reference, { type: 'object', properties: { title } }] },
    ],
    [
      'whose thirty members each require it again',
      {
        type: 'object',
        required: ['title', ...names],
        properties: { title, ...Object.fromEntries(names.map((name) => [name, reference])) },
      },
    ],
  ] as const;
  for (const [of, Note] of cases)
    it(`is made, with a bound, of a schema ${of}`, () => {
      const requestBody = { content: { 'application/json': { schema: reference } } };
      const paths = { '/notes': { get: {}, post: { requestBody } }, '/notes/{id}': { get: {} } };
      const [found] = describedCollections({ paths, components: { schemas: { Note } } });
      assert.equal(found?.sample?.title, 'condu');
      assert.ok(JSON.stringify(found).length < 200_000);
    });
});

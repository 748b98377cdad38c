/**
 * Deletions with more dependants than a unit takes, against what others do meanwhile (§4.7.6): what prevents one prevents it before anything
 * is deleted. The hook of a child holds the operation at a known place: each child is judged once, and then deleted.
 */
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { engineNames } from '../../harness/engine-names.ts';
import type { Answer } from '../../harness/exchange.ts';
import { databaseOfProgram } from '../../harness/program-database.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';
import { eventually } from '../../harness/until.ts';

const config = fileURLToPath(new URL('./fixtures/long-deletion.config.ts', import.meta.url));
const children = 7;
const cascadeMax = 3;

type Family = {
  readonly parent: string;
  readonly children: readonly string[];
  readonly user: string;
  readonly etag: string;
};

/** What others do while the operation is held before its n-th deletion of a child, of which the first ones are judgements. */
type Scenario = {
  readonly title: string;
  readonly texts?: readonly string[];
  /** Before the request. */
  readonly first?: (at: RunningServer, family: Family) => Promise<unknown>;
  readonly heldAt?: number;
  readonly meanwhile?: (at: RunningServer, family: Family) => Promise<void>;
  /** Of the failure; undefined: all is deleted. */
  readonly code?: string;
};

const patch = (at: RunningServer, path: string, json: object): Promise<Answer> =>
  at.send('PATCH', `/api/v1/${path}`, {
    json,
    headers: { 'Content-Type': 'application/merge-patch+json' },
  });
const post = (at: RunningServer, path: string, json: object): Promise<Answer> =>
  at.send('POST', `/api/v1/${path}`, { json });
const disable = async (at: RunningServer, { user }: Family): Promise<void> => {
  assert.equal((await patch(at, `users/${user}`, { disabled: true })).status, 200);
};
const isRunning = ({ status, body }: Answer): void => {
  assert.equal(`${status} ${(JSON.parse(body) as { code: string }).code}`, '409 deletion_running');
};

const judging = 2;
const deleting = children + cascadeMax + 1;
/** Walks of the request: it is accepted, judged, decided, and deletes. */
const walkOfDeletion = 4;

const scenarios: readonly Scenario[] = [
  { title: 'delete all if nothing prevents it' },
  {
    title: 'delete nothing if a dependant of a dependant restricts',
    first: (at, family) => post(at, 'pins', { childId: family.children[children - 1] }),
    code: 'dependants_exist',
  },
  {
    title: 'delete nothing if the named document is restricted',
    first: (at, { parent }) => post(at, 'pins', { parentId: parent }),
    code: 'dependants_exist',
  },
  {
    title: 'delete what restricts before what it restricts, where both follow',
    first: async (at, family) => {
      for (const childId of family.children) await post(at, 'pins', { childId, bundleId: family.parent });
    },
  },
  {
    title: 'delete nothing if the hook of the last dependant refuses',
    texts: ['1', '2', '3', '4', '5', '6', 'kept'],
    code: 'child_kept',
  },
  {
    title: 'delete nothing if the account of the caller is disabled while they are judged',
    heldAt: judging,
    meanwhile: disable,
    code: 'invalid_token',
  },
  {
    title: 'go on if the account of the caller is disabled while they delete',
    heldAt: deleting,
    meanwhile: disable,
  },
  {
    title: 'refuse every change of what they take while they judge, and new dependants',
    heldAt: judging,
    meanwhile: refuseChanges,
  },
  {
    title: 'refuse every change of what they take while they delete, and new dependants',
    heldAt: deleting,
    meanwhile: refuseChanges,
  },
];

async function refuseChanges(at: RunningServer, { parent, children: ids }: Family): Promise<void> {
  const last = ids.at(-1);
  isRunning(await patch(at, `parents/${parent}`, { name: 'changed' }));
  isRunning(await post(at, 'children', { text: 'new', parentId: parent }));
  isRunning(await post(at, 'pins', { parentId: parent }));
  isRunning(await post(at, 'pins', { childId: last }));
  isRunning(await patch(at, `children/${last}`, { text: 'changed' }));
  isRunning(
    await at
      .send('DELETE', `/api/v1/parents/${parent}`, { headers: { Prefer: 'return=minimal' } })
      .then(async (answer) => {
        assert.equal(answer.status, 202, answer.body);
        return outcomeOf(at, answer);
      }),
  );
  assert.equal((await at.send('GET', `/api/v1/parents/${parent}`)).status, 200);
}

/** The outcome of a failed operation as an answer. */
async function outcomeOf(at: RunningServer, { headers }: Answer): Promise<Answer> {
  const ended = await endOf(at, String(headers.location));
  const { outcome } = ended.json() as { outcome: object };
  return { ...ended, status: 409, body: JSON.stringify(outcome) };
}

function endOf(at: RunningServer, location: string): Promise<Answer> {
  return eventually(async () => {
    const answer = await at.send('GET', location);
    return answer.status === 303 || answer.json().status === 'failed' ? answer : undefined;
  });
}

for (const engine of engineNames) {
  describe(`long deletions on ${engine}`, () => {
    let server: RunningServer;
    let number = 0;

    before(async () => {
      const database = engine === 'SQLite' ? undefined : await databaseOfProgram(config);
      const url = database === undefined ? {} : { COMITY_DATABASE_URL: database.url };
      server = await startServer({ config, env: { COMITY_CASCADE_MAX: String(cascadeMax), ...url } });
      if (database !== undefined) after(() => database.dispose());
    });
    after(() => server.stop());
    afterEach(() => {
      globalThis.onChildDeletion = undefined;
      globalThis.onParentDeletion = undefined;
    });

    async function familyOf(texts: readonly string[]): Promise<Family & { readonly token: string }> {
      number += 1;
      const json = { email: `caller-${number}@example.com`, password: 'correct horse battery staple' };
      const registered = await server.send('POST', '/api/v1/auth/register', { json, anonymous: true });
      const { token, user } = registered.json() as { token: string; user: { id: string } };
      const headers = { Authorization: `Bearer ${token}` };
      const made = await server.send('POST', '/api/v1/parents', {
        ...{ json: { name: 'parent' }, anonymous: true, headers },
      });
      assert.equal(made.status, 201, made.body);
      const parent = String(made.json().id);
      const ids: string[] = [];
      for (const text of texts) {
        const child = await post(server, 'children', { text, parentId: parent });
        assert.equal(child.status, 201, child.body);
        ids.push(String(child.json().id));
      }
      return { parent, children: ids, user: user.id, etag: String(made.headers.etag), token };
    }

    const childrenOf = async (parent: string): Promise<number> =>
      ((await server.send('GET', `/api/v1/children?parentId=${parent}`)).json().items as unknown[]).length;

    test('accept a change until the mark, and then delete nothing if it failed the precondition', async () => {
      const { parent, etag, token } = await familyOf(['1', '2', '3', '4', '5']);
      const headers = { Authorization: `Bearer ${token}`, 'If-Match': etag };
      const accepted = await server.send('DELETE', `/api/v1/parents/${parent}`, { anonymous: true, headers });
      assert.equal(accepted.status, 202, accepted.body);
      const changed = await patch(server, `parents/${parent}`, { name: 'changed' });
      const ended = await endOf(server, String(accepted.headers.location));
      const outcome = ended.status === 303 ? undefined : (ended.json().outcome as { code: string }).code;
      // The mark may have been faster.
      const wanted = changed.status === 200 ? 'precondition_failed' : undefined;
      if (wanted === undefined) assert.ok([404, 409].includes(changed.status), changed.body);
      assert.equal(outcome, wanted);
      assert.equal(await childrenOf(parent), wanted === undefined ? 0 : 5);
    });

    for (const does of ['refuses', 'fails', 'writes twice'] as const)
      for (const whose of ['a child', 'the parent'])
        test(`delete all if the hook of ${whose} ${does} although it let pass what was judged`, async () => {
          const { parent, token } = await familyOf(Array.from({ length: children }, (_, n) => `${n}`));
          await post(server, 'notes', { text: 'taken' });
          const notes = async () =>
            ((await server.send('GET', '/api/v1/notes?limit=100')).json().items as unknown[]).length;
          const before = await notes();
          let calls = 0;
          globalThis.onChildDeletion = () => {
            calls += 1;
            return whose === 'a child' && calls > children && calls % 3 === 0 ? does : undefined;
          };
          let walks = 0;
          globalThis.onParentDeletion = () => {
            walks += 1;
            return whose === 'the parent' && walks >= walkOfDeletion ? does : undefined;
          };
          const headers = { Authorization: `Bearer ${token}` };
          const accepted = await server.send('DELETE', `/api/v1/parents/${parent}`, {
            anonymous: true,
            headers,
          });
          assert.equal(accepted.status, 202, accepted.body);
          const ended = await endOf(server, String(accepted.headers.location));
          assert.equal(ended.status, 303, ended.body);
          assert.equal(await childrenOf(parent), 0);
          assert.equal((await server.send('GET', `/api/v1/parents/${parent}`)).status, 404);
          assert.equal(await notes(), before, 'nothing that the hook wrote');
        });

    for (const { title, texts, first, heldAt = 0, meanwhile, code } of scenarios) {
      test(title, async () => {
        const family = await familyOf(texts ?? Array.from({ length: children }, (_, n) => `${n}`));
        const { parent, etag, token } = family;
        await first?.(server, family);
        const held = Promise.withResolvers<void>();
        const goOn = Promise.withResolvers<undefined>();
        let calls = 0;
        globalThis.onChildDeletion = (): Promise<undefined> | undefined => {
          calls += 1;
          if (calls !== heldAt) return undefined;
          held.resolve();
          return goOn.promise;
        };
        const accepted = await server.send('DELETE', `/api/v1/parents/${parent}`, {
          anonymous: true,
          headers: { Authorization: `Bearer ${token}`, 'If-Match': etag },
        });
        assert.equal(accepted.status, 202, accepted.body);
        if (meanwhile !== undefined) {
          await held.promise;
          await meanwhile(server, family).finally(() => goOn.resolve(undefined));
        }
        const ended = await endOf(server, String(accepted.headers.location));
        const failed = ended.status === 303 ? undefined : (ended.json().outcome as { code: string });
        assert.equal(failed?.code, code, ended.body);
        assert.equal(await childrenOf(parent), code === undefined ? 0 : children);
        const { status } = await server.send('GET', `/api/v1/parents/${parent}`);
        assert.equal(status, code === undefined ? 404 : 200);
        if (code === undefined) return;
        // Nothing stays marked.
        assert.equal((await patch(server, `parents/${parent}`, { name: 'changed' })).status, 200);
        assert.equal((await post(server, 'children', { text: 'new', parentId: parent })).status, 201);
      });
    }
  });
}

/** Stamped fields (§2.9): set by every kind of write, and written by no client in any format. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import {
  type Asked,
  asAdministrator,
  base,
  bearer,
  register,
  serveAccounts,
} from '../../harness/account-client.ts';
import { until } from '../../harness/until.ts';

const config = fileURLToPath(new URL('../fixtures/actors.config.ts', import.meta.url));
const { client } = await serveAccounts({ config });
const ada = await register(client, 'ada@stamps.example', 'correct horse battery');
const bob = await register(client, 'bob@stamps.example', 'correct horse battery');
const path = `${base}/remarks`;
const [asAda, asBob] = [bearer(ada.token), bearer(bob.token)];

type Remark = {
  readonly id: string;
  readonly text: string;
  readonly authorId?: string;
  readonly editorId?: string;
  readonly editedAt?: string;
  readonly updatedAt: string;
};

async function done(method: string, at: string, asked: Asked): Promise<Remark> {
  const answer = await client.ask(method, at, asked);
  assert.ok(answer.status < 300, `${method} ${answer.status} ${answer.body}`);
  return answer.json() as unknown as Remark;
}

const stampsOf = ({ authorId, editorId }: Remark) => [authorId, editorId];

test('stamps the creation, and each later write, by POST, PUT, PATCH and the text, form and multipart formats', async () => {
  const made = await done('POST', path, { headers: asAda, json: { text: 'one' } });
  assert.deepEqual(Object.keys(made), [
    'id',
    'authorId',
    'text',
    'editorId',
    'editedAt',
    'createdAt',
    'updatedAt',
  ]);
  assert.deepEqual([...stampsOf(made), made.editedAt], [ada.userId, ada.userId, made.updatedAt]);
  const at = `${path}/${made.id}`;
  const patched = await done('PATCH', at, { headers: asBob, json: { text: 'two' } });
  assert.deepEqual([...stampsOf(patched), patched.editedAt], [ada.userId, bob.userId, patched.updatedAt]);
  const put = await done('PUT', at, { headers: asAdministrator, json: { text: 'three' } });
  assert.deepEqual(stampsOf(put), [ada.userId, 'administrator']);
  const nobody = await done('PATCH', at, { json: { text: 'four' } });
  assert.deepEqual(stampsOf(nobody), [ada.userId, undefined], 'without a principal there is no stamp');
  const created = await done('PUT', `${path}/chosen`, { headers: asBob, json: { text: 'five' } });
  assert.deepEqual(stampsOf(created), [bob.userId, bob.userId]);
  const text = { ...asAda, 'Content-Type': 'text/plain' };
  assert.deepEqual(stampsOf(await done('POST', path, { headers: text, body: 'plain' })), [
    ada.userId,
    ada.userId,
  ]);
  const form = { ...asAda, 'Content-Type': 'application/x-www-form-urlencoded' };
  assert.deepEqual(stampsOf(await done('POST', path, { headers: form, body: 'text=f' })), [
    ada.userId,
    ada.userId,
  ]);
  const found = await client.ask('GET', `${path}?authorId=${bob.userId}`);
  assert.deepEqual(
    (found.json().items as Remark[]).map(({ id }) => id),
    ['chosen'],
  );
  const same = await done('PATCH', `${path}/chosen`, { headers: asAda, json: { text: 'five' } });
  assert.deepEqual(stampsOf(same), [bob.userId, bob.userId], 'a patch that changes nothing is no write');
  const long = await done('POST', path, { headers: asAda, json: { text: 'x'.repeat(400_000) } });
  assert.deepEqual(stampsOf(long), [ada.userId, ada.userId], 'also where a thread made the fields');
});

test('no client, the administrator included, writes a stamped field in any format; repeating it is no change', async () => {
  const made = await done('POST', path, { headers: asAda, json: { text: 'one' } });
  const at = `${path}/${made.id}`;
  const boundary = 'b';
  const part = (name: string, value: string) =>
    `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
  const patch = (operations: unknown) => ({
    headers: { ...asAda, 'Content-Type': 'application/json-patch+json' },
    body: JSON.stringify(operations),
  });
  const attempts: readonly (readonly [string, string, Asked])[] = [
    ['POST', path, { headers: asAda, json: { text: 'x', authorId: bob.userId } }],
    ['POST', path, { headers: asAda, json: { text: 'x', authorId: ada.userId } }],
    ['POST', path, { headers: asAdministrator, json: { text: 'x', authorId: bob.userId } }],
    ['POST', path, { json: { text: 'x', editedAt: '2020-01-01T00:00:00.000Z' } }],
    [
      'POST',
      path,
      {
        headers: { ...asAda, 'Content-Type': 'application/x-www-form-urlencoded' },
        body: `text=x&authorId=${bob.userId}`,
      },
    ],
    [
      'POST',
      path,
      {
        headers: { ...asAda, 'Content-Type': `multipart/form-data; boundary=${boundary}` },
        body: `${part('text', 'x')}${part('editorId', bob.userId)}--${boundary}--\r\n`,
      },
    ],
    ['PUT', at, { headers: asAda, json: { text: 'x', authorId: bob.userId } }],
    ['PUT', `${path}/new`, { headers: asAda, json: { text: 'x', authorId: bob.userId } }],
    ['PATCH', at, { headers: asAdministrator, json: { authorId: bob.userId } }],
    ['PATCH', at, { headers: asAda, json: { authorId: null } }],
    ['PATCH', at, { headers: asAda, json: { editedAt: '2020-01-01T00:00:00.000Z' } }],
    ['PATCH', at, patch([{ op: 'replace', path: '/authorId', value: bob.userId }])],
    ['PATCH', at, patch([{ op: 'remove', path: '/editorId' }])],
    ['PATCH', at, patch([{ op: 'copy', from: '/text', path: '/authorId' }])],
    ['PATCH', at, patch([{ op: 'move', from: '/text', path: '/editorId' }])],
  ];
  for (const [method, target, asked] of attempts) {
    const answer = await client.ask(method, target, asked);
    const what = `${method} ${JSON.stringify(asked)} ${answer.status} ${answer.body}`;
    assert.deepEqual([answer.status, answer.json().code], [400, 'field_unpatchable'], what);
  }
  const repeated = await done('PUT', at, { headers: asBob, json: { ...made, text: 'two' } });
  assert.deepEqual(stampsOf(repeated), [ada.userId, bob.userId]);
});

test('stamps what functions write with the caller of the request; what they give stays, and without a caller there is none', async () => {
  const page = await done('POST', `${base}/pages`, { headers: asAda, json: { text: 'with a hook' } });
  const remarks = async (text: string) => {
    const answer = await client.ask('GET', `${path}?text=${encodeURIComponent(text)}`);
    return (answer.json().items as Remark[]).map(stampsOf);
  };
  assert.deepEqual(await remarks('by a hook'), [[ada.userId, ada.userId]]);
  const gone = await client.ask('DELETE', `${base}/pages/${page.id}`, { headers: asBob });
  assert.equal(gone.status, 204, gone.body);
  await until(async () => (await remarks('for another')).length === 1, 'the subscriber has run');
  assert.deepEqual(await remarks('by nobody'), [[undefined, undefined]]);
  assert.deepEqual(await remarks('for another'), [['given', undefined]]);
});

test('the OpenAPI document has stamped fields in representations, and in nothing that clients send', async () => {
  const document = (await client.ask('GET', '/openapi.json')).json() as {
    components: { schemas: Record<string, { properties?: Record<string, { description?: string }> }> };
  };
  const { Remark, RemarkInput, RemarkPatch } = document.components.schemas;
  const { description } = Remark?.properties?.authorId ?? {};
  assert.match(String(description), /Id of the principal of the creation, set by the server/);
  for (const { properties = {} } of [RemarkInput ?? {}, RemarkPatch ?? {}])
    assert.deepEqual(['text' in properties, 'authorId' in properties], [true, false]);
});

type Outcome = { readonly id: string; readonly status: number };

test('stamps each item of a bulk request, one unit or one by one, short or long, and names who asked in the events', async () => {
  const filler = 'x'.repeat(400_000);
  for (const [atomic, more] of [
    [true, ''],
    [false, ''],
    [true, filler],
  ] as const) {
    const items = [{ text: `bulk ${more}` }, { text: 'bulk two' }];
    const answer = await client.ask('POST', `${path}/bulk`, { headers: asBob, json: { items, atomic } });
    assert.equal(answer.status, 200, answer.body);
    for (const { id } of answer.json().items as readonly Outcome[]) {
      const made = await done('GET', `${path}/${id}`, { headers: asAdministrator });
      assert.deepEqual([...stampsOf(made), made.editedAt], [bob.userId, bob.userId, made.updatedAt]);
      const events = await client.ask('GET', `${base}/events?data.object.id=${id}`, {
        headers: asAdministrator,
      });
      const [event] = events.json().items as readonly { actor?: object; requestId?: string }[];
      assert.deepEqual(event?.actor, { kind: 'user', id: bob.userId });
      assert.ok(event?.requestId);
    }
    const forged = [{ text: 'forged', authorId: ada.userId }];
    const refused = await client.ask('POST', `${path}/bulk`, { headers: asBob, json: { items: forged } });
    assert.deepEqual([refused.status, refused.json().code], [400, 'field_unpatchable']);
  }
});

test('an import keeps the stamps of its documents, stamps what has none, and an import of an export changes nothing', async () => {
  const made = await done('POST', path, { headers: asAda, json: { text: 'to move' } });
  const exported = await client.ask('GET', `${path}/bulk?id=${made.id}`, { headers: asAdministrator });
  const [whole] = exported.json().items as readonly Remark[];
  assert.ok(whole);
  const bring = async (items: readonly object[], padding = '') => {
    const rest = padding === '' ? [] : [{ text: padding }];
    const json = { items: [...items, ...rest], import: { existing: 'update' } };
    const answer = await client.ask('POST', `${path}/bulk`, { headers: asAdministrator, json });
    assert.equal(answer.status, 200, answer.body);
    return answer.json().items as readonly (Outcome & { unchanged?: true })[];
  };
  assert.equal((await bring([whole]))[0]?.unchanged, true);
  assert.equal((await bring([whole], 'x'.repeat(400_000)))[0]?.unchanged, true, 'on a content thread alike');
  const given = { ...whole, id: 'moved', authorId: bob.userId, editedAt: '2020-01-01T00:00:00.000Z' };
  await bring([given]);
  const moved = await done('GET', `${path}/moved`, { headers: asAdministrator });
  assert.deepEqual([...stampsOf(moved), moved.editedAt], [bob.userId, ada.userId, given.editedAt]);
  await bring([{ id: 'bare', text: 'bare' }]);
  const bare = await done('GET', `${path}/bare`, { headers: asAdministrator });
  assert.deepEqual(stampsOf(bare), ['administrator', 'administrator']);
});

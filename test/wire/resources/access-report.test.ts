/** `/meta/access` (§4.21.9), on both stores: what it says of a caller is what requests of that caller get. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { register, serveAccounts } from '../../harness/account-client.ts';
import { describeOnEachStore } from '../../harness/engine-names.ts';
import { adminKey } from '../../harness/exchange.ts';

const config = fileURLToPath(new URL('./fixtures/orders-access.config.ts', import.meta.url));

type Part = {
  readonly number: string;
  readonly text: string;
  readonly words: string;
  readonly answer: string | null;
  readonly isReturned: boolean;
  readonly source: string | null;
  readonly parts: readonly Part[];
};
type Decision = {
  readonly answer: string;
  readonly reason: string;
  readonly by: string | null;
  readonly failure: string | null;
  readonly text: string | null;
  readonly words: string | null;
  readonly rules: readonly Part[];
};
type Report = {
  readonly caller: { readonly roles: readonly string[] };
  readonly operations: readonly (Decision & {
    readonly name: string;
    readonly requests: readonly string[];
  })[];
  readonly members: readonly { readonly name: string; readonly read: Decision; readonly write: Decision }[];
  readonly roles: readonly string[];
};

/** `1 no (1.1 yes, 1.2 no), 2 no` */
function outline(parts: readonly Part[]): string {
  return parts
    .map(({ number, answer, parts: inner }) =>
      inner.length === 0 ? `${number} ${answer}` : `${number} ${answer} (${outline(inner)})`,
    )
    .join(', ');
}

describeOnEachStore('the access report', async (engine) => {
  const { client } = await serveAccounts({ config, engine });
  const open = async (email: string, roles: readonly string[]) => {
    const account = await register(client, email, 'correct horse battery');
    await client.ask('PATCH', `users/${account.userId}`, { json: { roles }, as: adminKey, expect: 200 });
    return account;
  };
  const [dora, olaf, chief, root] = [
    await open('dora@shop.example', ['dispatcher']),
    await open('olaf@shop.example', []),
    await open('chief@shop.example', ['chief']),
    await open('root@shop.example', ['administrator']),
  ];
  const create = async (path: string, json: object): Promise<string> =>
    (await client.ask('POST', path, { json, as: olaf.token, expect: 201 })).json().id;
  const mine = await create('orders', { number: '1' });
  const closed = await create('orders', { number: '2', status: 'closed', isPublic: true });
  for (const id of [mine, closed])
    await client.ask('PATCH', `orders/${id}`, { json: { margin: 3 }, as: dora.token, expect: 200 });
  const note = await create('notes', { orderId: mine, text: 'Broken' });

  const ask = (query: string, as: string | undefined = adminKey) =>
    client.ask('GET', `meta/access?${query}`, as === undefined ? {} : { as });
  const report = async (query: string): Promise<Report> => {
    const response = await ask(query);
    assert.equal(response.status, 200, response.body);
    return response.json();
  };
  const operation = async (query: string, name: string) => {
    const { operations } = await report(query);
    return operations.find((each) => each.name === name) ?? assert.fail(`no ${name}`);
  };

  test('says what a role may always, never and by condition do', async () => {
    const answers = async (query: string) =>
      (await report(`collection=orders${query}`)).operations.map(({ name, answer }) => `${name} ${answer}`);
    assert.deepEqual(await answers('&role=dispatcher'), [
      ...['read always', 'create always', 'update always', 'replace always', 'delete depends'],
      ...['assign always', 'stats always'],
    ]);
    assert.deepEqual(await answers('&role='), [
      ...['read depends', 'create always', 'update depends', 'replace depends', 'delete depends'],
      ...['assign depends', 'stats always'],
    ]);
    assert.deepEqual(await answers(''), [
      ...['read depends', 'create never', 'update never', 'replace never', 'delete never'],
      ...['assign never', 'stats never'],
    ]);
    const { requests } = await operation('collection=orders', 'assign');
    assert.deepEqual(requests, ['POST /api/v1/orders/{id}/assign']);
    assert.deepEqual((await report('collection=orders')).roles, ['dispatcher']);
  });

  test('writes each rule with brackets, by names and by labels', async () => {
    const { text, words, rules } = await operation('collection=orders&role=dispatcher', 'update');
    assert.equal(text, '(status is open AND owner is the caller) OR role is dispatcher');
    assert.equal(words, '(State is open AND owner is the caller) OR role is dispatcher');
    assert.equal(outline(rules), '1 depends (1.1 depends, 1.2 depends), 2 always');
  });

  test('calls functions for the caller, and says that they are functions', async () => {
    const of = await operation(`collection=orders&account=${olaf.userId}`, 'delete');
    assert.equal(of.text, 'status is open or assigned AND owner is the caller');
    assert.deepEqual([of.answer, of.rules[0]?.isReturned], ['depends', true]);
    const byChief = await operation('collection=orders&role=chief', 'delete');
    assert.deepEqual([byChief.text, byChief.answer, byChief.reason], ['always', 'depends', 'unreadable']);
    assert.match(of.rules[0]?.source ?? '', /^\(principal, document\) =>/);
    const beyond = await operation(`collection=notes&account=${olaf.userId}`, 'read');
    assert.equal(beyond.text, 'orderId.owner is the caller');
  });

  test('says by which rule a caller may do something to a document, and which part forbids it', async () => {
    const update = (id: string, account: string) =>
      operation(`collection=orders&id=${id}&account=${account}`, 'update');
    const byDora = await update(mine, dora.userId);
    assert.deepEqual([byDora.answer, byDora.reason, byDora.by], ['yes', 'rule', '2']);
    assert.equal(outline(byDora.rules), '1 no (1.1 yes, 1.2 no), 2 yes');
    const byOlaf = await update(closed, olaf.userId);
    assert.deepEqual([byOlaf.answer, byOlaf.by], ['no', null]);
    assert.equal(outline(byOlaf.rules), '1 no (1.1 no, 1.2 yes), 2 no');
    const byRoot = await update(mine, root.userId);
    assert.deepEqual(
      [byRoot.answer, byRoot.reason, outline(byRoot.rules)],
      [...['yes', 'administrator'], '1 null (1.1 null, 1.2 null), 2 null'],
    );
    const unseen = await update(mine, chief.userId);
    assert.deepEqual([unseen.answer, unseen.reason], ['no', 'rule']);
    const removed = await operation(`collection=orders&id=${mine}&account=${chief.userId}`, 'delete');
    assert.deepEqual([removed.answer, removed.reason], ['no', 'unreadable']);
  });

  test('says which members a caller sees and sets', async () => {
    const members = async (query: string) =>
      Object.fromEntries(
        (await report(`collection=orders${query}`)).members.map(({ name, read, write }) => [
          name,
          `${read.answer} ${read.reason}, ${write.answer} ${write.reason}`,
        ]),
      );
    const byDora = await members(`&account=${dora.userId}&id=${closed}`);
    assert.deepEqual(
      [byDora.price, byDora.number, byDora.authorId, byDora.status],
      [
        'yes unrestricted, yes rule',
        'yes unrestricted, no fixed',
        'yes unrestricted, no server',
        'yes unrestricted, yes unrestricted',
      ],
    );
    const byOlaf = await members(`&account=${olaf.userId}&id=${closed}`);
    assert.deepEqual(
      [byOlaf.margin, byOlaf.price, byOlaf.status],
      ['no rule, no document', 'yes unrestricted, no rule', 'yes unrestricted, no document'],
    );
    const anonymous = await members('');
    assert.deepEqual(
      [anonymous.margin, anonymous.price],
      ['depends rule, never document', 'depends document, never rule'],
    );
  });

  describe('agrees with requests', () => {
    const callers = { dora, olaf, chief, root, nobody: undefined } as const;
    let newPrice = 10;
    for (const [who, account] of Object.entries(callers)) {
      test(`of ${who}`, async () => {
        const as = account === undefined ? {} : { as: account.token };
        const query = account === undefined ? '' : `&account=${account.userId}`;
        for (const [of, id] of [
          ['orders', mine],
          ['orders', closed],
          ['notes', note],
        ] as const) {
          const { operations, members } = await report(`collection=${of}&id=${id}${query}`);
          const own = await client.ask('GET', `meta/access?account=me&collection=${of}&id=${id}`, as);
          if (operations[0]?.answer === 'yes')
            assert.deepEqual(
              (own.json() as Report).operations.map(({ name, answer }) => `${name} ${answer}`),
              operations.map(({ name, answer }) => `${name} ${answer}`),
              `${who} asks about themselves`,
            );
          else assert.match(own.json().error, /^id: there is no document /);
          const says = (name: string) => operations.find((each) => each.name === name)?.answer === 'yes';
          const read = await client.ask('GET', `${of}/${id}`, as);
          assert.equal(read.status === 200, says('read'), `${who} reads ${of} ${read.body}`);
          const patch = await client.ask('PATCH', `${of}/${id}`, { ...as, json: {} });
          assert.equal(patch.status === 200, says('update'), `${who} updates ${of} ${patch.body}`);
          const removal = await client.ask('DELETE', `${of}/${id}`, {
            ...as,
            headers: { 'If-Match': '"none"' },
          });
          assert.equal(removal.status === 412, says('delete'), `${who} deletes ${of} ${removal.body}`);
          const margin = members.find(({ name }) => name === 'margin')?.read.answer ?? 'no';
          assert.equal('margin' in read.json(), margin === 'yes', `${who} sees the margin of ${of}`);
          newPrice += 1;
          const json = { price: newPrice };
          const price = await client.ask('PATCH', `${of}/${id}`, { ...as, json });
          const sets = members.find(({ name }) => name === 'price')?.write.answer ?? 'no';
          assert.equal(price.status === 200, sets === 'yes', `${who} sets the price of ${of} ${price.body}`);
          if (of !== 'orders') continue;
          const assign = await client.ask('POST', `${of}/${id}/assign`, as);
          assert.equal(assign.status < 300, says('assign'), `${who} assigns ${assign.body}`);
        }
      });
    }
  });

  test('says that a function fails, as a request of the caller does', async () => {
    const { answer, reason, failure, rules } = await operation('collection=faults&role=breaker', 'read');
    assert.deepEqual([answer, reason], ['never', 'failed']);
    assert.equal(failure, 'this rule cannot judge a breaker');
    assert.match(rules[0]?.source ?? '', /^\(principal\) => \{\s+if \(principal\.roles\.has\('breaker'\)\)/);
    assert.equal((await operation('collection=faults&role=breaker', 'update')).reason, 'failed');
  });

  test('tells everyone what they may do themselves, without the rules and what they never see', async () => {
    const own = async (query: string, as?: string): Promise<Report> => {
      const response = await client.ask('GET', `meta/access?account=me&${query}`, { as, expect: 200 });
      return response.json();
    };
    const byOlaf = await own('collection=orders', olaf.token);
    assert.deepEqual(
      byOlaf.operations.map(({ name, answer }) => `${name} ${answer}`),
      [
        ...['read depends', 'create always', 'update depends', 'replace depends', 'delete depends'],
        ...['assign depends', 'stats always'],
      ],
    );
    const shown = [...byOlaf.operations, ...byOlaf.members.flatMap(({ read, write }) => [read, write])];
    for (const { by, text, words, rules, failure } of shown)
      assert.deepEqual([by, text, words, rules, failure], [null, null, null, [], null]);
    assert.deepEqual(byOlaf.roles, []);
    const names = (of: Report) => of.members.map(({ name }) => name);
    assert.ok(!names(await own(`collection=orders&id=${closed}`, olaf.token)).includes('margin'));
    assert.ok(names(await own(`collection=orders&id=${closed}`, dora.token)).includes('margin'));
    const byNobody = await own('collection=orders');
    assert.equal(byNobody.operations.find(({ name }) => name === 'create')?.answer, 'never');
    const byRoot = await own('collection=orders', root.token);
    assert.deepEqual(byRoot.roles, ['dispatcher']);
    assert.notEqual(byRoot.operations[2]?.text, null);
  });

  test('tells which actions on no collection a caller may call', async () => {
    const answersOf = async (as?: string) => {
      const { json } = await client.ask('GET', 'meta/access?account=me', { as, expect: 200 });
      const { collection, operations } = json() as Report & { collection: null };
      return [collection, ...operations.map(({ requests, answer }) => `${requests} ${answer}`)];
    };
    assert.deepEqual(await answersOf(dora.token), [null, 'POST /api/v1/close-day always']);
    assert.deepEqual(await answersOf(olaf.token), [null, 'POST /api/v1/close-day never']);
    for (const [account, status] of [
      [dora, 204],
      [olaf, 403],
    ] as const)
      await client.ask('POST', 'close-day', { as: account.token, expect: status });
  });

  test('tells who may create accounts', async () => {
    const { operations } = await report('collection=users&role=dispatcher');
    assert.equal(operations.find(({ name }) => name === 'create')?.answer, 'never');
  });

  test('tells nobody else about others', async () => {
    assert.equal((await ask('collection=orders', dora.token)).status, 403);
    assert.equal((await client.ask('GET', 'meta/access?collection=orders')).status, 401);
    assert.equal((await ask('collection=orders', root.token)).status, 200);
  });

  describe('refuses', () => {
    const long = 'a'.repeat(65);
    const refusals: readonly (readonly [query: string, message: RegExp])[] = [
      ['id=none', /^id needs a collection$/],
      ['collection=order', /^collection: there is no collection "order"; did you mean orders\?$/],
      ['collection=orders&role=a&role=b', /^each query parameter may be named once$/],
      ['collection=orders&rule=a', /^unknown query parameter "rule"; the parameters are collection, role, /],
      ['collection=orders&account=usr_none', /^account: there is no account "usr_none" that is in use$/],
      [
        'collection=orders&account=administrator',
        /^account: there is no account "administrator" that is in use$/,
      ],
      ['collection=orders&account=usr_1&role=a', /^account has a role and a tenant of its own; /],
      ['collection=orders&tenant=north', /^tenant needs a role$/],
      [`collection=orders&role=${long}`, /^role must have at most 64 characters$/],
      [`collection=orders&role=a&tenant=${'a'.repeat(256)}`, /^tenant must have at most 255 characters$/],
      ['collection=orders&id=none', /^id: there is no document "none" in orders$/],
      [`collection=orders&id=${'a'.repeat(300)}`, /^id: there is no document /],
      ['collection=%ff', /^malformed query string$/],
    ];
    for (const [query, message] of refusals) {
      test(`?${query.slice(0, 60)}`, async () => {
        const response = await ask(query);
        assert.deepEqual([response.status, response.json().code], [400, 'query_parameter_invalid']);
        assert.match(response.json().error, message);
      });
    }

    test('a disabled account', async () => {
      const gone = await open('gone@shop.example', []);
      await client.ask('PATCH', `users/${gone.userId}`, {
        json: { disabled: true },
        as: adminKey,
        expect: 200,
      });
      assert.equal((await ask(`collection=orders&account=${gone.userId}`)).status, 400);
    });
  });

  test('takes a role of 64 characters', async () => {
    const { caller } = await report(`collection=orders&role=${'a'.repeat(64)}`);
    assert.equal(caller.roles[0]?.length, 64);
  });
});

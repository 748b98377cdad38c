/** Members whose names begin with `@` or `$` can be filtered, sorted, selected and unique, in each language of queries and on both stores. */
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { engineNames } from '../../harness/engine-names.ts';
import type { RunningServer } from '../../harness/running-server.ts';
import { serversOn } from '../../harness/servers-on.ts';

const config = fileURLToPath(new URL('../fixtures/signed-names.config.ts', import.meta.url));
const path = '/api/v1/nodes';

for (const engine of engineNames) {
  describe(engine, () => {
    const start = serversOn(engine, config);
    let program: RunningServer;
    before(async () => {
      program = await start();
      for (const [$x, context] of [
        [1, 'b'],
        [2, 'a'],
        [3, 'a'],
      ] as const) {
        const json = { '@context': context, $x, part: { '@id': `n${$x}` } };
        assert.equal((await program.send('POST', path, { json })).status, 201);
      }
    });

    const asked: readonly (readonly [
      type: string | undefined,
      query: string,
      expected: readonly number[],
    ])[] = [
      [undefined, '@context=a&sort=-$x', [3, 2]],
      [undefined, '%40context=a&$x[gt]=2', [3]],
      [undefined, 'part.@id=n2', [2]],
      [undefined, 'sort=@context,-$x', [3, 2, 1]],
      ['application/json', '{"filter":{"@context":"a","part.@id":{"ne":"n3"}},"sort":["$x"]}', [2]],
      [
        'application/sql',
        `SELECT * FROM nodes WHERE "@context" = 'a' AND "$x" > 1 ORDER BY "$x" DESC`,
        [3, 2],
      ],
      ['application/sql', `SELECT * FROM nodes WHERE part."@id" = 'n1'`, [1]],
      ['application/x-www-form-urlencoded', 'part.@id=n2&fields=$x', [2]],
    ];
    for (const [type, query, expected] of asked) {
      test(`finds ${expected} by ${query}`, async () => {
        const answer =
          type === undefined
            ? await program.send('GET', `${path}?${query}`)
            : await program.send('QUERY', path, { body: query, headers: { 'Content-Type': type } });
        assert.equal(answer.status, 200, answer.body);
        const items = answer.json().items as readonly { readonly $x: number }[];
        assert.deepEqual(
          items.map(({ $x }) => $x),
          expected,
        );
      });
    }

    test('refuses a second document with the same unique member', async () => {
      const { status } = await program.send('POST', path, { json: { '@context': 'c', $x: 1 } });
      assert.equal(status, 409);
    });
  });
}

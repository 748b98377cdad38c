/** Every declared command for a running server calls an operation of the program, with members that this operation takes. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { remoteCommands } from '../../src/cli/program.ts';
import type { RemoteCommand } from '../../src/cli/remote/run-remote.ts';
import { runCommand } from '../harness/command-line.ts';
import { listen } from '../harness/listening.ts';
import {
  accounts,
  documentOf,
  type Item,
  resolved,
  shopCollections,
  shopReceiving,
} from '../openapi/fixture.ts';

const document = documentOf(shopCollections, '3.2', { accounts, receiving: shopReceiving });
const paths = document.paths as Readonly<Record<string, Readonly<Record<string, Item>>>>;

/** @param request `PATCH /endpoints/{id}` */
function operationOf(request: string): Item | undefined {
  const [method = '', path = ''] = request.split(' ');
  const found = Object.entries(paths).find(([each]) => shapeOf(each) === shapeOf(`/api/v1${path}`));
  return found?.[1][method.toLowerCase()];
}

/** Captures have other names in a command where the argument has. */
function shapeOf(path: string): string {
  return path.replace(/\{\w+\}/g, '{}');
}

function membersOf(operation: Item): ReadonlySet<string> {
  const parameters = ((operation.parameters ?? []) as readonly Item[]).map((each) =>
    String(resolved(document, each).name),
  );
  const { content = {} } = (
    operation.requestBody === undefined ? {} : resolved(document, operation.requestBody)
  ) as { content?: Record<string, { schema?: Item }> };
  return new Set([
    ...parameters,
    ...Object.values(content).flatMap(({ schema = {} }) => propertiesOf(schema)),
  ]);
}

function propertiesOf(schema: Item): readonly string[] {
  const { properties = {}, ...rest } = resolved(document, schema) as { properties?: Item };
  const parts = ['allOf', 'anyOf', 'oneOf'].flatMap(
    (word) => ((rest as Item)[word] ?? []) as readonly Item[],
  );
  return [...Object.keys(properties), ...parts.flatMap(propertiesOf)];
}

const commands = remoteCommands.flatMap((each): readonly (readonly [string, RemoteCommand])[] =>
  'commands' in each
    ? each.commands.map((command) => [`${each.name} ${command.name}`, command])
    : [[each.name, each]],
);

for (const [name, { request, finds, options = [], content = {} }] of commands) {
  test(`sends with "comity ${name}" what its operation takes`, () => {
    if (typeof finds === 'string') assert.ok(operationOf(finds), finds);
    if (request === undefined) return;
    const operation = operationOf(request);
    assert.ok(operation, request);
    const taken = membersOf(operation);
    const sent = [
      ...options.flatMap(([, , rule]) => rule?.member ?? []),
      ...(typeof content === 'function' ? [] : Object.keys(content)),
    ];
    for (const member of sent) assert.ok(taken.has(member.replace(/\[\w+\]$/, '')), `${request}: ${member}`);
  });
}

test('reads every page of a list of what is declared', async (context) => {
  const server = createServer((request, response) => {
    const isSecond = request.url?.includes('cursor=next') === true;
    const items = [{ type: isSecond ? 'b.made' : 'a.made', description: 'Made' }];
    response.end(JSON.stringify({ items, nextCursor: isSecond ? null : 'next' }));
  });
  const { url } = await listen(server, context);
  const { stdout } = await runCommand(['events', 'types'], { COMITY_URL: url, COMITY_KEY: 'sk_x' });
  assert.equal(stdout, 'TYPE    DESCRIPTION\na.made  Made\nb.made  Made\n');
});

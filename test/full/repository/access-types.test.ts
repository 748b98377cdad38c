/** Functions as access rules, as an editor sees them (§5.1): what the schema does not have must not compile. */
import assert from 'node:assert/strict';
import { symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { findTypeProblems } from '../../../scripts/checks/compile.ts';
import { formatProblems } from '../../../scripts/checks/problem.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';

const heading = `
import { allow, collection, Type } from '${resolve('src/index.ts')}';

const schema = Type.Object({
  title: Type.String(),
  price: Type.Optional(Type.Number()),
  state: Type.Union([Type.Literal('draft'), Type.Literal('out')]),
  published: Type.Optional(Type.Boolean()),
  tags: Type.Array(Type.String()),
  address: Type.Optional(Type.Object({ city: Type.String(), floor: Type.Integer() })),
  since: Type.String({ format: 'date-time' }),
});
type S = typeof schema;
const Child = Type.Object({ parentId: Type.String(), own: Type.Optional(Type.Boolean()) });
type C = typeof Child;
const Grandchild = Type.Object({ childId: Type.Optional(Type.String()) });
type G = typeof Grandchild;
`;

const sound = [
  'allow<S>((principal, resource) => principal.roles.has("editor") || resource.published.is(true))',
  'allow<S>((principal, resource) => resource.owner.is(principal.id))',
  'allow<S>((_principal, resource) => resource.state.in(["draft", "out"]).and(resource.price.gte(1), resource.tags.has("a")))',
  'allow<S>((_principal, resource) => resource.address.city.is("Rome").or(resource.address.floor.lt(3)).not())',
  'allow<S>((_principal, resource) => resource.since.gt("2026-01-01T00:00:00.000Z").and(resource.createdAt.isPresent()))',
  'allow<S>((principal, resource) => resource.title.in(principal.roles))',
  'allow<S>((principal) => principal.scopes.has("webhooks") && principal.tenant !== null)',
  'collection({ schema, access: { read: { anyOf: ["tenant", { role: "auditor" }, { scope: "admin" }, allow<S>((_p, r) => r.published.is(true))] } } })',
  'allow<C, { parentId: S }>((principal, resource) => resource.parentId.title.is(principal.id).or(resource.parentId.owner.is(principal.id), resource.parentId.is("a")))',
  'allow<G, { childId: [C, { parentId: S }] }>((_principal, resource) => resource.childId.parentId.address.city.is("Rome").and(resource.childId.own.is(true)))',
  'collection({ schema: Child, references: { parentId: { collection: "things" } }, access: { read: { where: { "parentId.published": true, own: true } } } })',
  'collection({ schema, readOnly: { price: { role: "trader" } }, hidden: { tags: "owner" }, tenantField: "title" })',
];

const unsound = [
  'allow<S>((_principal, resource) => resource.colour.is("red"))',
  'allow<S>((_principal, resource) => resource.price.is("1"))',
  'allow<S>((_principal, resource) => resource.title.is(1))',
  'allow<S>((_principal, resource) => resource.published.gt(true))',
  'allow<S>((_principal, resource) => resource.state.is("gone"))',
  'allow<S>((_principal, resource) => resource.tags.is("a"))',
  'allow<S>((_principal, resource) => resource.tags.has(1))',
  'allow<S>((_principal, resource) => resource.address.street.is("a"))',
  'allow<S>((_principal, resource) => resource.title === "a" ? 1 : 2)',
  'allow<S>((_principal, resource) => resource.title)',
  'allow<S>(async (_principal, resource) => resource.published.is(true))',
  'allow<S>((principal) => principal.email === "a")',
  'allow<S>((principal) => principal.scopes.has("everything"))',
  'collection({ schema, access: { read: { scope: "everything" } } })',
  'collection({ schema, access: { read: { role: 1 } } })',
  'allow<C, { parentId: S }>((_principal, resource) => resource.parentId.colour.is("red"))',
  'allow<C, { parentId: S }>((_principal, resource) => resource.parentId.price.is("1"))',
  'allow<C>((_principal, resource) => resource.parentId.title.is("a"))',
  'allow<G, { childId: [C, { parentId: S }] }>((_principal, resource) => resource.childId.parentId.colour.is("red"))',
  'collection({ schema: Child, access: { read: { where: { "own.published": true } } } })',
  'collection({ schema: Child, access: { read: { where: { "parentId.published": ["a"] } } } })',
];

test('a rule that fits the schema compiles; an unknown field or a wrong type does not', async () => {
  const folder = temporaryFolder();
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'));
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  writeFileSync(
    join(folder, 'tsconfig.json'),
    JSON.stringify({
      extends: resolve('tsconfig.json'),
      include: [],
      files: ['rules.ts'],
      compilerOptions: { rewriteRelativeImportExtensions: false },
    }),
  );
  const lines = [...sound, ...unsound].map(
    (expression, index) => `export const rule${index} = ${expression};`,
  );
  writeFileSync(join(folder, 'rules.ts'), `${heading}${lines.join('\n')}\n`);
  const first = heading.split('\n').length;
  const problems = await findTypeProblems(folder);
  const found = problems.filter(({ file }) => file === 'rules.ts');
  const faulty = new Set(found.map(({ line = 0 }) => line - first));
  const wanted = unsound.map((_, index) => sound.length + index);
  assert.deepEqual(
    [...faulty].sort((one, other) => one - other),
    wanted,
    formatProblems(problems),
  );
});

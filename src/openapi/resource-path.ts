/**
 * A resource as a path of the document: from its own documentation (kernel/documentation.ts) or from the description of
 * any collection, and from its operations.
 */

import { isNode } from '../config/declared-schema.ts';
import type { FieldName } from '../http/response-fields.ts';
import {
  type CollectionDocumentation,
  type CollectionNames,
  type CollectionOperation,
  type Content,
  type Item,
  type MemberAccess,
  type OperationDocumentation,
  type PathDocumentation,
  referenceIn,
} from '../kernel/documentation.ts';
import type { Operation, Resource } from '../kernel/resource.ts';
import { namedIn, permission, type Rule } from '../model/access.ts';
import { type Collection, withOwner } from '../model/collection.ts';
import { clientIdCharactersMax, clientIdPattern } from '../model/id.ts';
import { anonymous, authenticated, type Principal, type Scope } from '../model/principal.ts';
import { collectionOperations, type Described } from './collection-operations.ts';
import { type Components, ref } from './components.ts';
import { inputParameter, inputSchema } from './input-schemas.ts';
import { listParameters, pageParameters, pagingParameters } from './list-parameters.ts';
import type { Description, PathDescription } from './path-item.ts';
import { addResourceSchemas, resourceExamples } from './resource-schemas.ts';
import { gateOf, plainRead, type Traits } from './traits.ts';

type Naming = {
  readonly components: Components;
  /** Names of collections in schemas, by collection. */
  readonly names: ReadonlyMap<string, CollectionNames>;
  /** Those whose members are resources, by name. */
  readonly collections: ReadonlyMap<string, Collection>;
};

/** Undefined if the resource or all of its operations are undocumented. */
export function resourcePath(resource: Resource, naming: Naming): PathDescription | undefined {
  const { documentation } = resource;
  if (documentation === undefined) return undefined;
  const described =
    'part' in documentation
      ? collectionPath(resource, documentation, naming)
      : ownPath(resource, documentation, naming);
  return described.operations.length === 0 ? undefined : described;
}

function ownPath(
  resource: Resource,
  { parameters, tag }: PathDocumentation,
  naming: Naming,
): PathDescription {
  const shared: Shared = { tag: tag.name, ...ofEveryResponse(resource) };
  const operations = [...resource.operations].flatMap(([method, operation]) => {
    const { documentation } = operation;
    if (documentation === undefined) return [];
    return [describe(resource, method, operation, documentation, shared, naming)];
  });
  return { path: resource.pattern, parameters, operations };
}

function collectionPath(
  resource: Resource,
  { part, collection, limits, idPrefix, owned, revise }: CollectionDocumentation,
  naming: Naming,
): PathDescription {
  const { components } = naming;
  const names = namesOf(collection, naming);
  const relating = { ...naming, collection };
  if (!components.has('schemas', names.singular)) addResourceSchemas(relating, names, components);
  const examples = resourceExamples(collection, names, components, idPrefix);
  const named = owned === true ? { ...collection, fields: withOwner(collection) } : collection;
  const described: Described = { collection, named, names, limits, components, examples, relating };
  const shared: Shared = {
    tag: collection.name,
    ...ofEveryResponse(resource),
    counts: collection.dependants.map(({ countAs }) => countAs),
  };
  const operations = [...resource.operations].map(([method, operation]) => {
    const name = operationNames[part][method];
    if (name === undefined)
      throw new Error(`${method} ${resource.pattern} is not an operation of a collection`);
    const standard = operation.documentation ?? collectionOperations[name](described);
    const documentation = revise?.[name]?.(standard) ?? standard;
    return describe(resource, method, operation, documentation, shared, naming);
  });
  const parameters = part === 'member' ? [idParameter(components)] : undefined;
  return { path: resource.pattern, parameters, operations };
}

const operationNames: Readonly<
  Record<CollectionDocumentation['part'], Readonly<Record<string, CollectionOperation>>>
> = {
  collection: { GET: 'list', POST: 'create', QUERY: 'query', PATCH: 'patch-many' },
  member: { GET: 'read', PUT: 'replace', PATCH: 'patch', DELETE: 'remove' },
  bulk: { GET: 'export', POST: 'bulk' },
  'bulk-delete': { POST: 'bulk-delete' },
  import: { POST: 'import' },
};

/** As model/id.ts takes ids of clients; those of the server are such as well. */
function idParameter(components: Components): Item {
  return components.add('parameters', 'id', {
    ...{ name: 'id', in: 'path', required: true },
    schema: { type: 'string', minLength: 1, maxLength: clientIdCharactersMax, pattern: clientIdPattern },
  });
}

function ofEveryResponse(resource: Resource): Pick<Shared, 'deprecated' | 'constantFields'> {
  const names = fieldNames(resource.constantFields);
  return { deprecated: names.includes('Deprecation'), constantFields: names };
}

/** @param fields name, value, name, value ... */
export function fieldNames(fields: readonly string[]): readonly FieldName[] {
  return fields.filter((_text, index) => index % 2 === 0) as readonly FieldName[];
}

type Shared = Pick<Description, 'tag' | 'deprecated' | 'constantFields' | 'counts'>;

function describe(
  resource: Resource,
  method: string,
  operation: Operation,
  documentation: OperationDocumentation,
  shared: Shared,
  naming: Naming,
): Description {
  const { id, summary, description, audience, takes, representationFields, madeFields, ownCodes, action } =
    documentation;
  const schemes = resource.judgedBySignature === true ? [] : documentation.schemes;
  return {
    ...{ ...shared, id, summary, description, audience, representationFields, madeFields, schemes, ownCodes },
    action,
    traits: traitsOf(resource, method, operation, documentation),
    parameters: parametersOf(documentation, naming.components).map(inputParameter),
    preferences: preferencesOf(method, operation, documentation),
    requestContent: takes === undefined ? undefined : placed(inputContent(takes), naming),
    content: placed(givenBy(operation, documentation), naming),
  };
}

function traitsOf(
  resource: Resource,
  method: string,
  operation: Operation,
  documentation: OperationDocumentation,
): Traits {
  const { raw = false, reports = false, idempotent = false, createsHere = false } = operation;
  const { codes = [], member, gives, creates, queues, redirects } = documentation;
  const standing = member === undefined ? plainRead : memberStanding(member, createsHere);
  return {
    method,
    contentTypes: raw ? ['*/*'] : (operation.contentTypes ?? []),
    contentOptional: operation.contentOptional ?? false,
    signed: resource.judgedBySignature ?? false,
    ...{ raw, arrives: operation.receive !== undefined },
    action: reports,
    silent:
      documentation.silence ??
      (reports && Object.keys(gives ?? {}).every((name) => name === 'accepted') ? 'always' : 'never'),
    gate: gateOf((principal) => operation.permission(principal)),
    answersForms: operation.answersForms ?? false,
    idempotent: idempotent !== false,
    asynchronous: operation.asynchronous ?? false,
    matchRequired: operation.matchRequired ?? false,
    creates: createsHere ? 'sometimes' : (creates ?? 'never'),
    queues: queues ?? 'never',
    mayBeMissing: documentation.mayBeMissing ?? standing.mayBeMissing,
    mayBeHidden: documentation.mayBeHidden ?? standing.mayBeHidden,
    mayBeClosed: documentation.mayBeClosed ?? standing.mayBeClosed,
    redirects: redirects ?? 'never',
    redirect: operation.redirect,
    streams: operation.stream !== undefined,
    ranges: operation.ranges ?? false,
    converses: operation.converse !== undefined,
    unlimited: resource.unlimited ?? false,
    validators: validatorsOf(operation, member),
    codes: idempotent === 'sealed' ? [...codes, 'idempotency_result_sealed'] : codes,
  };
}

/** Files, and octets that have ranges, have both, wherever they are. */
function validatorsOf(
  { validators, ranges }: Operation,
  member: OperationDocumentation['member'],
): Traits['validators'] {
  if (validators === undefined) return 'none';
  return member === undefined && ranges !== true ? 'tag' : 'tag-and-date';
}

/** A 206 has the content of the 200, or several parts of it. */
function givenBy({ ranges }: Operation, { gives }: OperationDocumentation): OperationDocumentation['gives'] {
  if (ranges !== true) return gives;
  return { ...gives, partial: { ...gives?.representation, 'multipart/byteranges': { schema: {} } } };
}

/** `count=exact` and `plan` apply if the response may carry a count, or a plan. */
function preferencesOf(
  method: string,
  { reports = false, asynchronous = false, stream }: Operation,
  { representationFields = [] }: OperationDocumentation,
): readonly string[] {
  if (method === 'GET' || method === 'QUERY') {
    return [
      ...(representationFields.includes('X-Total-Count') ? ['count=exact'] : []),
      ...(representationFields.includes('Comity-Plan') ? ['plan'] : []),
      ...(stream === undefined ? [] : ['wait=SECONDS']),
    ];
  }
  return [
    ...(reports ? [] : [method === 'DELETE' ? 'return=representation' : 'return=minimal']),
    ...(asynchronous ? ['respond-async'] : []),
  ];
}

function parametersOf(
  { parameters = [], paged, listed }: OperationDocumentation,
  components: Components,
): readonly Item[] {
  if (listed !== undefined) {
    const { limits, ...of } = listed;
    return [...parameters, ...listParameters({ ...of, searched: false }, limits, components)];
  }
  if (paged === undefined) return parameters;
  return paged === 'as-stored' ? pageParameters(components) : pagingParameters(paged, components);
}

function inputContent(content: Content): Content {
  return Object.fromEntries(
    Object.entries(content).map(([type, { schema, ...rest }]) => [
      type,
      isNode(schema) ? { schema: inputSchema(schema), ...rest } : { ...rest },
    ]),
  );
}

function namesOf({ name }: Pick<Collection, 'name'>, { names }: Naming): CollectionNames {
  const found = names.get(name);
  if (found === undefined) throw new Error(`the collection ${name} has no names`);
  return found;
}

/** Returns a JSON copy in which every named schema is a reference to the components. */
function placed<T>(value: T, naming: Naming): T {
  return place(value, naming) as T;
}

function place(value: unknown, naming: Naming): unknown {
  if (Array.isArray(value)) return value.map((part) => place(part, naming));
  if (typeof value !== 'object' || value === null) return value;
  const reference = referenceIn(value);
  if (reference !== undefined && 'collection' in reference) {
    return ref('schemas', namesOf({ name: reference.collection }, naming).singular);
  }
  // TypeBox keeps members of its own beside the keywords; their names begin with a tilde. Keywords of `~documented` are for this document alone.
  const parts = Object.entries(value).filter(([name]) => !name.startsWith('~'));
  const { '~documented': documented = {} } = value as { readonly '~documented'?: object };
  const plain = {
    ...Object.fromEntries(parts.map(([name, part]) => [name, place(part, naming)])),
    ...documented,
  };
  if (reference === undefined) return plain;
  const { name } = reference;
  const known = naming.components.get('schemas', name);
  if (known !== undefined && JSON.stringify(known) !== JSON.stringify(plain)) {
    throw new Error(`two schemas are named ${name}`);
  }
  return naming.components.add('schemas', name, plain);
}

// Derives from the access rules of a collection how a request for a member may end (§4.7.1, §5.1), as
// resources/collection/member.ts decides it. The rules are evaluated for one caller of each kind that they
// distinguish: with and without a credential, with a tenant, with each role and scope that a rule names.

type MemberStanding = {
  readonly mayBeMissing: boolean;
  readonly mayBeHidden: boolean;
  readonly mayBeClosed: boolean;
};

/** @param creates the operation may create a missing member */
export function memberStanding(
  { collection, action, rule: own }: MemberAccess,
  creates: boolean,
): MemberStanding {
  const { conceal } = collection;
  const access = own === undefined ? collection.access : { ...collection.access, [action]: own };
  const rules = [[access[action], action] as const, ...(creates ? [[access.create, 'create'] as const] : [])];
  const ruled = rules.map(([rule]) => rule);
  const callers = callersOf([access.read, ...ruled]).filter((principal) =>
    rules.some(([rule, of]) => permission(rule, of, principal) !== 'denied'),
  );
  const sees = (principal: Principal) => permission(access.read, 'read', principal) === 'granted';
  const may = (principal: Principal) =>
    (action === 'read' || permission(access[action], action, principal) === 'granted') &&
    (!creates || permission(access.create, 'create', principal) !== 'denied');
  const allSee = !asksFunction(access.read) && callers.every(sees);
  const allMay = (action === 'read' || !ruled.some(asksFunction)) && callers.every(may);
  return {
    mayBeMissing: true,
    mayBeHidden: conceal && !allSee,
    mayBeClosed: !allMay || (!conceal && !allSee),
  };
}

function callersOf(rules: readonly Rule[]): readonly Principal[] {
  const named = namedIn(rules);
  const usual: readonly Scope[] = ['read', 'write'];
  const roles = [...named.roles];
  const scopes = [...named.scopes].filter((scope) => scope !== 'admin');
  const sets = [
    { roles: [], scopes: usual },
    ...roles.map((role) => ({ roles: [role], scopes: usual })),
    ...scopes.map((scope) => ({ roles: [], scopes: [...usual, scope] })),
    { roles, scopes: [...usual, ...scopes] },
  ];
  const known = sets.flatMap((set) => [null, 'a'].map((tenant) => authenticated({ id: '', ...set, tenant })));
  return [anonymous, ...known];
}

/** True if the rule calls a function, which may distinguish callers in ways that cannot be enumerated. */
function asksFunction(rule: Rule): boolean {
  if (typeof rule === 'string') return false;
  if ('anyOf' in rule) return rule.anyOf.some(asksFunction);
  if ('allOf' in rule) return rule.allOf.some(asksFunction);
  if ('bearing' in rule) return asksFunction(rule.rule);
  return 'filterFor' in rule || 'allow' in rule;
}

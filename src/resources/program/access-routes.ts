/**
 * `/meta/access` (§4.21.9): what a caller may do with a collection and with one of its documents. Everyone asks about themselves, and gets
 * answers without the rules; administrators ask about an account, about somebody with a role, and about callers without a credential.
 */
import type { DeclaredAction } from '../../config/actions.ts';
import { suggestion } from '../../config/inspection.ts';
import type { Problem } from '../../http/problem.ts';
import { parseQueryString } from '../../http/syntax/query-string.ts';
import { type Item, json, named } from '../../kernel/documentation.ts';
import type { Ask, Operation, Proposal, Resource, Standing } from '../../kernel/resource.ts';
import { namedIn } from '../../model/access.ts';
import type { Collection } from '../../model/collection.ts';
import { idPrefixes } from '../../model/id.ts';
import {
  administratorRole,
  anonymous,
  authenticated,
  isAdministrator,
  type Principal,
  scopes,
} from '../../model/principal.ts';
import { judged, RelatedRows } from '../../store/related-rows.ts';
import type { Store } from '../../store/store.ts';
import { subjectOf } from '../collection/view.ts';
import { quote } from '../query/query-faults.ts';
import {
  accessReport,
  answers,
  freeActionDecisions,
  type Judging,
  reasons,
  unexplained,
} from './access-report.ts';
import { serviceTag } from './document.ts';

export type AccessServices = {
  readonly base: string;
  readonly store: Pick<Store, 'read'>;
  readonly collections: ReadonlyMap<string, Collection>;
  readonly actions: readonly DeclaredAction[];
  /** The principal of an account as it is now; undefined: there is none in use. @throws StoreUnavailable */
  readonly accountNow: (id: string) => Promise<Principal | undefined>;
};

type Asked = {
  /** Undefined: none, but the actions that are on no collection. */
  readonly collection: Collection | undefined;
  readonly caller: Principal;
  /** Undefined: any document. */
  readonly id: string | undefined;
  /** The rules are shown too. */
  readonly isExplained: boolean;
};

type Refused = { readonly problem: Problem };

const parameterNames: ReadonlySet<string> = new Set(['collection', 'role', 'tenant', 'account', 'id']);
const parametersMax = 16;
/** As the declaration bounds names of roles. */
const roleCharactersMax = 64;
/** In place of the id of an account: the caller of the request. */
const ownAccount = 'me';
/** Of ids and tenants. */
const textCharactersMax = 255;

/** Stands for the account, and for the tenant, of a caller of whom only the role is known. No account and no tenant is named so. */
const supposed = { id: idPrefixes.account, tenant: 'tenant|' } as const;

export function accessResource(services: AccessServices): Resource {
  const operation: Operation<Standing, never, Proposal & { readonly content?: string }> = {
    documentation: {
      id: 'readAccess',
      summary: 'Read what a caller may do with a collection',
      description:
        'Names each operation and each member with the answer, the rule and the part that decides. With `id` it is about that document; without `collection` it names the actions that are on none. Everyone may ask about themselves (`account=me`): who is no administrator gets the answers and reasons, without the rules and without members that they never see. The functions of access rules are called as for a request of the caller. A caller of whom only the role is known has an account with the scopes `read` and `write` and without fields, and some tenant; without `role` and `account` it has no credential. `create` takes the document for a new one with its members.',
      parameters: parametersFor(services),
      gives: { representation: json(reportSchema, reportExample) },
      codes: ['query_parameter_invalid'],
    },
    permission: (principal) => (isAdministrator(principal) ? 'granted' : 'depends'),
    standing: ({ principal, query = '' }) => ({
      ...{ exists: true, visible: true },
      permitted:
        isAdministrator(principal) ||
        new Map(parseQueryString(query, parametersMax)).get('account') === ownAccount,
    }),
    async propose(ask) {
      const asked = await readAsked(services, ask);
      if ('problem' in asked) return asked;
      const report = await reportOf(services, asked);
      return 'problem' in report ? report : { problem: null, content: JSON.stringify(report) };
    },
    validators: () => ({ tag: null, modifiedAt: null, cacheControl }),
    represent: (_ask, _standing, proposal) => ({
      content: proposal?.content ?? '',
      mediaType: 'application/json',
      validators: { tag: null, modifiedAt: null },
      cacheControl,
    }),
  };
  return {
    pattern: `${services.base}/meta/access`,
    documentation: { name: 'MetaAccess', tag: serviceTag },
    operations: new Map([['GET', operation as Operation]]),
    constantFields: [],
    offers: ['application/json'],
  };
}

const cacheControl = 'private, no-store';

async function readAsked(services: AccessServices, { query = '', principal }: Ask): Promise<Asked | Refused> {
  const pairs = parseQueryString(query, parametersMax);
  if (pairs === undefined) return refused('malformed query string');
  const given = new Map(pairs);
  const other = pairs.find(([name]) => !parameterNames.has(name));
  if (other !== undefined)
    return refused(
      `unknown query parameter ${quote(other[0])}; the parameters are ${[...parameterNames].join(', ')}`,
    );
  if (given.size < pairs.length) return refused('each query parameter may be named once');
  const name = given.get('collection');
  const collection = services.collections.get(name ?? '');
  if (name === undefined && given.has('id')) return refused('id needs a collection');
  if (name !== undefined && collection === undefined) {
    const meant = suggestion(name, services.collections.keys());
    return refused(`collection: there is no collection ${quote(name)}${meant}`);
  }
  const caller = await callerOf(services, given, principal);
  if ('problem' in caller) return caller;
  return { collection, caller, id: given.get('id'), isExplained: isAdministrator(principal) };
}

async function callerOf(
  { accountNow }: AccessServices,
  given: ReadonlyMap<string, string>,
  asking: Principal,
): Promise<Principal | Refused> {
  const [role, tenant, account] = ['role', 'tenant', 'account'].map((name) => given.get(name));
  if (account !== undefined) {
    if (role !== undefined || tenant !== undefined)
      return refused('account has a role and a tenant of its own; name either account or role');
    if (account === ownAccount) return asking;
    const found = account.length > textCharactersMax ? undefined : await accountNow(account);
    return found ?? refused(`account: there is no account ${quote(account)} that is in use`);
  }
  if (role === undefined) return tenant === undefined ? anonymous : refused('tenant needs a role');
  if (role.length > roleCharactersMax)
    return refused(`role must have at most ${roleCharactersMax} characters`);
  if ((tenant ?? '').length > textCharactersMax)
    return refused(`tenant must have at most ${textCharactersMax} characters`);
  return authenticated({
    id: supposed.id,
    scopes: role === administratorRole ? scopes : ['read', 'write'],
    roles: role === '' ? [] : [role],
    tenant: tenant ?? supposed.tenant,
  });
}

function refused(message: string): Refused {
  return { problem: { code: 'query_parameter_invalid', message } };
}

async function reportOf(
  { base, store, actions, collections }: AccessServices,
  { collection, caller, id, isExplained }: Asked,
): Promise<object | Refused> {
  if (collection === undefined) {
    const free = actions.filter((action) => action.collection === undefined);
    const operations = freeActionDecisions({ base, actions: free, caller });
    return { collection: null, id: null, caller: shownCaller(caller), operations, members: [], roles: [] };
  }
  const row =
    id === undefined || id.length > textCharactersMax ? undefined : await store.read(collection.name, id);
  if (id !== undefined && (row === undefined || row.deletedAt !== null))
    return refused(`id: there is no document ${quote(id)} in ${collection.name}`);
  const rows = new RelatedRows(store);
  const judging: Judging = {
    ...{ collection, caller, base, path: `${base}/${collection.name}` },
    actions: actions.filter((action) => action.collection === collection),
    subject: row === undefined ? undefined : subjectOf(row, rows),
  };
  const report = await judged(rows, () => accessReport(judging));
  // A document that the caller may not read is one that is not there.
  if (!isExplained && id !== undefined && report.operations[0]?.answer !== 'yes')
    return refused(`id: there is no document ${quote(id)} in ${collection.name}`);
  if (!isExplained)
    return {
      collection: collection.name,
      id: id ?? null,
      caller: shownCaller(caller),
      ...unexplained(report),
      roles: [],
    };
  const all = [...collections.values()].flatMap(({ access, hidden, readOnly }) => [
    ...Object.values(access),
    ...hidden.values(),
    ...readOnly.values(),
  ]);
  const { roles } = namedIn([...all, ...actions.map(({ rule }) => rule)]);
  return {
    collection: collection.name,
    id: id ?? null,
    caller: shownCaller(caller),
    ...report,
    roles: [...roles].sort(),
  };
}

/** What is supposed of a caller is not shown. */
function shownCaller(caller: Principal) {
  if (caller.kind === 'anonymous') return { id: null, roles: [], scopes: [], tenant: null };
  const { id, roles, scopes: own, tenant } = caller;
  return {
    id: id === supposed.id ? null : id,
    ...{ roles: [...roles], scopes: [...own] },
    tenant: tenant === supposed.tenant ? null : tenant,
  };
}

function parametersFor({ collections }: AccessServices): readonly Item[] {
  const text = { type: 'string', maxLength: textCharactersMax };
  const inQuery = (name: string, description: string, schema: Item, required = false) => {
    return { name, in: 'query', ...(required ? { required } : {}), description, schema };
  };
  return [
    inQuery('collection', 'Name of the collection; absent: the actions that are on none.', {
      enum: [...collections.keys()],
    }),
    inQuery('role', 'A caller with this role; empty: with an account and no role.', {
      type: 'string',
      maxLength: roleCharactersMax,
    }),
    inQuery('tenant', 'The tenant of the caller with the role.', text),
    inQuery('account', 'Id of the account that is the caller; `me`: the caller of this request.', text),
    inQuery('id', 'Id of the document that the caller asks for.', text),
  ];
}

const strings = { type: 'array', items: { type: 'string' } };
const answer = {
  enum: answers,
  description: 'Of any document: `always`, `never`, `depends`. With `id`, of that one: `yes`, `no`.',
};

const partSchema = named('AccessRule', {
  description: 'An alternative of a rule, or a part of one.',
  type: 'object',
  properties: {
    number: { type: 'string', description: '`2` is the second alternative, `2.1` its first part.' },
    text: { type: 'string' },
    words: { type: 'string', description: 'The text with the labels of members.' },
    isReturned: {
      type: 'boolean',
      description: 'A function of the configuration returned it for the caller.',
    },
    source: {
      type: ['string', 'null'],
      description: 'The text of the function that was asked, at most 4,096 characters.',
    },
    answer: { enum: [...answers, null], description: 'Null: the rule was not asked.' },
    parts: { type: 'array', items: { $ref: '#/components/schemas/AccessRule' } },
  },
  required: ['number', 'text', 'words', 'isReturned', 'source', 'answer', 'parts'],
});

const decisionProperties = {
  answer,
  reason: {
    enum: reasons,
    description:
      '`rule`: the rule decides. `unrestricted`: there is none. `administrator`: no rule applies to one. `scope`: the credential lacks `read` or `write`. `unreadable`: the caller does not see it. `document`: the caller may not do it to the document at all. `server`: requests do not set the member. `fixed`: it is set at creation alone. `failed`: a function failed, and a request is 500.',
  },
  by: { type: ['string', 'null'], description: 'Number of the first alternative that permits.' },
  failure: {
    type: ['string', 'null'],
    description: 'The message of the exception with which a function failed.',
  },
  text: { type: ['string', 'null'], description: 'The rule.' },
  words: { type: ['string', 'null'], description: 'The rule with the labels of members.' },
  rules: { type: 'array', items: partSchema, description: 'Alternatives, any of which permits.' },
};

const decisionSchema = named('AccessDecision', {
  description: 'Whether a caller may do something, and why.',
  type: 'object',
  properties: decisionProperties,
  required: Object.keys(decisionProperties),
});

const operationSchema = named('AccessOfOperation', {
  description: 'The decision on an operation or an action.',
  type: 'object',
  properties: { name: { type: 'string' }, requests: strings, ...decisionProperties },
  required: ['name', 'requests', ...Object.keys(decisionProperties)],
});

const memberSchema = named('AccessOfMember', {
  description: 'The decisions on a member of documents.',
  type: 'object',
  properties: { name: { type: 'string' }, read: decisionSchema, write: decisionSchema },
  required: ['name', 'read', 'write'],
});

const callerSchema = {
  type: 'object',
  properties: {
    id: { type: ['string', 'null'] },
    roles: strings,
    scopes: strings,
    tenant: { type: ['string', 'null'] },
  },
  required: ['id', 'roles', 'scopes', 'tenant'],
};

const reportSchema = named('AccessReport', {
  description: 'What a caller may do with a collection.',
  type: 'object',
  properties: {
    collection: { type: ['string', 'null'] },
    id: { type: ['string', 'null'] },
    caller: callerSchema,
    operations: { type: 'array', items: operationSchema },
    members: { type: 'array', items: memberSchema },
    roles: { ...strings, description: 'Roles that rules of the configuration name.' },
  },
  required: ['collection', 'id', 'caller', 'operations', 'members', 'roles'],
});

const exampleRule = {
  ...{ text: 'role is agent', words: 'role is agent' },
  rules: [
    {
      number: '1',
      text: 'role is agent',
      words: 'role is agent',
      isReturned: false,
      source: null,
      answer: 'always',
      parts: [],
    },
  ],
};

const reportExample = {
  collection: 'orders',
  id: null,
  caller: { id: null, roles: ['agent'], scopes: ['read', 'write'], tenant: null },
  operations: [
    {
      ...{
        name: 'read',
        requests: ['GET /api/v1/orders', 'QUERY /api/v1/orders', 'GET /api/v1/orders/{id}'],
      },
      ...{ answer: 'always', reason: 'rule', by: '1', failure: null, ...exampleRule },
    },
  ],
  members: [],
  roles: ['agent'],
};

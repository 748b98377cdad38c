/**
 * `/users`: accounts as a collection (§5.1, §5.7). Administrators list, make and change them; an account reads, renames and deletes itself.
 * Roles, scopes and whatever else decides what it may do are for administrators, and for accounts that administer others within their own
 * rights. The rules of the application decide about its fields, and who else sees an account.
 */
import { Type } from 'typebox';
import type { ResolvedAccounts } from '../../config/accounts.ts';
import { actionResource, type Done } from '../../kernel/action.ts';
import { type OperationDocumentation, pathParameter } from '../../kernel/documentation.ts';
import type { Ask, Operation, Proposal, Resource, Result, Standing } from '../../kernel/resource.ts';
import { normalizeEmail } from '../../mail/email.ts';
import { permission } from '../../model/access.ts';
import { ownerField } from '../../model/field.ts';
import { byId } from '../../model/filter.ts';
import { idFor, idPrefixes } from '../../model/id.ts';
import { isAdministrator } from '../../model/principal.ts';
import { commitUnit, madeOf } from '../../resources/collection/commit.ts';
import { memberStanding } from '../../resources/collection/member.ts';
import { nextRow } from '../../resources/collection/row.ts';
import { type ServedCollection, serveCollection } from '../../resources/collection/serve-collection.ts';
import type {
  Accompaniment,
  Served,
  Serving,
  Written,
} from '../../resources/collection/served-collection.ts';
import {
  createOperation,
  type NewFields,
  patchOperation,
  type Revise,
  revised,
} from '../../resources/collection/write-operations.ts';
import type { FieldsOrWritten } from '../../resources/document/representation.ts';
import { pagesOf } from '../../store/in-batches.ts';
import type { Change, MaybePromise, Plan, Store } from '../../store/store.ts';
import { type AccountParts, commitRetried, type EndpointGeneration } from '../account-parts.ts';
import {
  administratorsOnly,
  emailFault,
  examplePassword,
  newPasswordFault,
  newPasswordSchema,
  refusedField,
} from '../account-schemas.ts';
import {
  changedFields,
  identitiesTable,
  mailCodesTable,
  passwordChange,
  passwordsTable,
  readPassword,
  readUser,
  type User,
  usersTable,
} from '../account-tables.ts';
import { type AuditFact, factOfAsk } from '../audit.ts';
import { inviteByLinkResource, inviteResource } from '../invitations.ts';
import { createKeysOfOwner, keysPerUnitMax } from '../keys/key-rows.ts';
import { viewOwnersTable, viewsTable } from '../saved-views.ts';
import { secondFactorsTable } from '../second-factor/factor-row.ts';
import type { Sessions } from '../sessions/sessions.ts';
import type { Administering } from './administering.ts';
import { demandAddress } from './new-accounts.ts';

export function userResources(
  parts: AccountParts,
  endpoints: EndpointGeneration,
  serving: Serving,
): ServedCollection {
  const { accounts, settings, administering } = parts;
  const removal = createAccountRemoval(serving.store, parts.sessions);
  const revise = reviseUser(administering);
  const documentCharactersMax = Math.min(settings.documentCharactersMax, settings.accountBytesMax);
  const own: UserParts = { ...parts, ...endpoints, removal };
  const plain = serveCollection(serving, accounts.users, {
    documentCharactersMax,
    announced: false,
    accompany: accompanyUser(own),
    ...(accounts.isListed ? {} : { listPermission: administratorsOnly }),
    create: createUserOperation(accounts, revise),
    documentation: {
      names: { singular: 'User', plural: 'Users', one: 'an account', many: 'accounts' },
      idPrefix: idPrefixes.account,
      ...(accounts.isListed ? {} : { revise: ofAdministrators }),
    },
  });
  const stages = (served: Served) => ({
    create: createUserOperation(accounts, revise)(served),
    patch: revised(patchOperation(served) as Operation, revise),
  });
  const invitation = accounts.invitations
    ? [
        inviteResource(parts, plain.served, stages),
        ...[inviteByLinkResource(parts, plain.served, stages) ?? []].flat(),
      ]
    : [];
  return {
    ...plain,
    resources: [
      ...[...plain.resources, ...invitation].map((resource) => adapted(resource, own, revise)),
      setPasswordResource(own, plain.served),
    ],
  };
}

type UserParts = AccountParts & EndpointGeneration & { readonly removal: AccountRemoval };

function adapted(resource: Resource, parts: UserParts, revise: Revise): Resource {
  const { accountBytesMax } = parts.settings;
  const isBulkDelete = resource.pattern.endsWith('/bulk-delete');
  const operations = [...resource.operations].map(([method, operation]) => {
    if (method === 'PUT' || method === 'PATCH')
      return [method, short(revised(operation, revise), accountBytesMax)] as const;
    if (method === 'POST' && !isBulkDelete) return [method, short(operation, accountBytesMax)] as const;
    if (method === 'DELETE') return [method, clearing(operation, parts, idOfMember)] as const;
    if (isBulkDelete) return [method, clearing(operation, parts, idsNamed)] as const;
    return [method, operation] as const;
  });
  return { ...resource, operations: new Map(operations) };
}

/** Every request of an account reads it, and its content is checked on the event loop. */
function short(operation: Operation, accountBytesMax: number): Operation {
  const { understand } = operation;
  if (understand === undefined) throw new Error('an operation that writes an account requires content');
  const message = `an account takes at most ${accountBytesMax} bytes (COMITY_ACCOUNT_BYTES_MAX)`;
  return {
    ...operation,
    understand: (ask, bytes, mediaType) =>
      bytes.length > accountBytesMax
        ? { ok: false, problem: { code: 'content_too_large', message } }
        : understand(ask, bytes, mediaType),
  };
}

const forOperators = (standard: OperationDocumentation): OperationDocumentation => ({
  ...standard,
  audience: 'operator',
});

/** Operations on accounts that are for administrators alone, unless the configuration lets others read accounts. */
const ofAdministrators = {
  ...{ list: forOperators, query: forOperators, create: forOperators },
  'bulk-delete': forOperators,
};

type IdsOf = (ask: Ask, proposal: Proposal | undefined) => readonly string[];

const idOfMember: IdsOf = ({ captures }) => captures;

const idsNamed: IdsOf = (_ask, proposal) => (proposal as { readonly ids?: readonly string[] })?.ids ?? [];

/** A deletion, and after it the end of what did not fit into its unit. */
function clearing(operation: Operation, parts: UserParts, idsOf: IdsOf): Operation {
  const { act } = operation;
  if (act === undefined) throw new Error('a deletion requires an act stage');
  return {
    ...operation,
    act: async (ask, standing, proposal) => {
      const result = await act(ask, standing, proposal);
      if ('made' in result)
        for (const id of idsOf(ask, proposal)) {
          await parts.removal.clear(id, revocationEntry(parts, ask));
        }
      return result;
    },
  };
}

type Told = Pick<AuditFact, 'type' | 'detail'>;

/**
 * Returns the changes that accompany a change of an account in one unit: the entries of the audit trail, the end of its sessions and codes when it is
 * disabled, of the codes mailed to an address that is no longer its own, and of all that it leaves behind when it is deleted.
 */
function accompanyUser(parts: UserParts): (written: Written) => Promise<Accompaniment> {
  const { audit, addressOf, sessions, generationChanges, administering, removal } = parts;

  async function consequences(
    ask: Written['ask'],
    id: string,
    before: User,
    after: User | undefined,
  ): Promise<readonly Change[]> {
    if (after === undefined) {
      return [...(await removal.changes(id, revocationEntry(parts, ask))), ...generationChanges()];
    }
    const told = mayBeToldOtherwise(before, after) ? generationChanges() : [];
    const isDisabled = after.disabled && !before.disabled;
    const ends = isDisabled ? await sessions.endOfUser(id, null) : [];
    const codes = isDisabled || before.email !== after.email ? await removal.codes(id) : [];
    return [...ends, ...codes, ...told];
  }

  return async ({ ask, id, before, next }) => {
    if (next === null && !mayLeave(ask)) return { refused: { code: 'forbidden', message: keyOnly } };
    const refused = next === null ? administering.refusalOf(ask.principal, { before, next }) : undefined;
    if (refused !== undefined) return { refused };
    const stood = before === undefined ? undefined : readUser(before.doc);
    const after = next === null ? undefined : readUser(next.doc);
    if (after !== undefined) demandAddress(after);
    const entries = factsOf(stood, after).map((told) =>
      audit.entry(factOfAsk(ask, addressOf, { ...told, subject: id })),
    );
    const changes = stood === undefined ? [] : await consequences(ask, id, stood, after);
    return { changes: [...changes, ...entries] };
  };
}

/** @returns the entry of the audit trail about a key that goes with its account */
function revocationEntry({ audit, addressOf }: AccountParts, ask: Written['ask']): (key: string) => Change {
  const detail = { reason: 'account.deleted' };
  return (key) => audit.entry(factOfAsk(ask, addressOf, { type: 'key.revoked', subject: key, detail }));
}

const keyOnly = 'log in to delete your account; a key cannot';

/** A key is for programs: one that leaks must not take its owner's account with it. */
function mayLeave({ principal, known }: Written['ask']): boolean {
  return isAdministrator(principal) || (known !== undefined && known.scheme !== 'key');
}

/** One fact for each kind of change; the rest of the members are only named, never shown. */
export function factsOf(before: User | undefined, after: User | undefined): readonly Told[] {
  if (after === undefined) return [{ type: 'account.deleted' }];
  if (before === undefined) return [{ type: 'account.registered', detail: grants(after) }];
  const facts: Told[] = [];
  if (before.disabled !== after.disabled) {
    facts.push({ type: after.disabled ? 'account.disabled' : 'account.enabled' });
  }
  if (!sameGrants(before, after)) facts.push({ type: 'account.roles_changed', detail: grants(after) });
  const own = (['email', 'name', 'emailVerified', 'tenant'] as const).filter(
    (member) => before[member] !== after[member],
  );
  const members = [...own, ...changedFields(before, after)];
  if (members.length > 0) facts.push({ type: 'account.changed', detail: { members } });
  return facts;
}

/** True if the endpoints of the account may get other events than before. */
export function mayBeToldOtherwise(before: User, after: User): boolean {
  const isSame = before.tenant === after.tenant && before.disabled === after.disabled;
  return !isSame || !sameGrants(before, after) || changedFields(before, after).length > 0;
}

function grants({ roles, scopes }: User): Told['detail'] & object {
  return { roles, scopes };
}

function sameGrants(before: User, after: User): boolean {
  return JSON.stringify(grants(before)) === JSON.stringify(grants(after));
}

const lost: Done = { refused: { code: 'unavailable' } };
const gone: Done = { refused: { code: 'not_found' } };

/**
 * POST to `/users/{id}/password`: an administrator, or an account that administers it, sets the password of an account, which ends all of
 * its sessions and makes every code that was mailed to it void. One's own password is changed at `/auth/password`, which asks for the old one.
 */
function setPasswordResource(parts: UserParts, served: Served): Resource {
  const { accounts, settings, administering, hasher } = parts;
  return actionResource(
    {
      path: `${served.path}/{id}/password`,
      parameters: [pathParameter('id', 'Id of the account.')],
      tag: !accounts.isAdministered ? { ...served.collection, audience: 'operator' } : served.collection,
      name: 'UserPassword',
      id: 'setUserPassword',
      summary: 'Set the password of an account',
      description: !accounts.isAdministered
        ? 'Administrators only. Ends all sessions of the account and revokes the codes that were mailed to it.'
        : 'For administrators, and for accounts that administer this one. Ends all sessions of the account and revokes the codes that were mailed to it.',
      input: {
        name: 'PasswordSet',
        schema: Type.Object({ password: newPasswordSchema(settings) }),
        example: { password: examplePassword },
      },
      codes: [],
      permission: (principal) => permission(served.collection.access.create, 'update', principal),
      standing: async (ask) => {
        const standing = await memberStanding(served, ask, 'update');
        const { row } = standing;
        const reaches = row === undefined || administering.refusalOfReach(ask.principal, row) === undefined;
        return { ...standing, permitted: standing.permitted && reaches };
      },
      mayBeMissing: true,
      handler: async (ask, { password }) => {
        const fault = newPasswordFault(password, settings);
        if (fault !== undefined) return refusedField('/password', fault);
        return setPassword(parts, served, ask, await hasher.hash(password));
      },
    },
    settings,
  );
}

async function setPassword(parts: UserParts, served: Served, ask: Ask, hash: string): Promise<Done> {
  const { store, clock } = served;
  const { administering, sessions, removal, audit, addressOf } = parts;
  const id = ask.captures[0] ?? '';
  const fact = factOfAsk(ask, addressOf, { type: 'password.changed', subject: id });
  const attempt = async () => {
    const account = await store.read(served.collection.name, id);
    if (account === undefined) return { refused: gone };
    // The account may have got rights meanwhile that the caller lacks.
    const refused = administering.refusalOfReach(ask.principal, account);
    if (refused !== undefined) return { refused: { refused } };
    const before = await readPassword(store, id);
    const at = Math.max(clock(), before?.row.updatedAt ?? 0);
    const changes = [
      {
        ...{ table: served.collection.name, id, expect: { rev: account.rev } },
        next: null,
        stays: true,
      } as const,
      passwordChange(id, before, hash, at),
      ...(await sessions.endOfUser(id, null)),
      ...(await removal.codes(id)),
      audit.entry(fact),
    ];
    return { changes, result: { content: null } };
  };
  return commitRetried<Done>(store, { table: passwordsTable, id }, attempt, () => lost);
}

// POST to `/users`: an administrator, or an account that administers others, makes an account. It has no password until one is set or
// reset; its owner is itself.

function createUserOperation(
  { users, creation }: Pick<ResolvedAccounts, 'users' | 'creation'>,
  revise: Revise,
): (served: Served) => Operation {
  return (served) => {
    const { answersForms, ...asAnywhere } = createOperation({ ...served, collection: creation }) as Operation;
    const operation: Operation = {
      ...asAnywhere,
      permission: (principal) => permission(users.access.create, 'create', principal),
      act: (ask: Ask, _standing: Standing, proposal: (Proposal & { fields?: NewFields }) | undefined) => {
        const fields = proposal?.fields ?? {};
        const write = {
          action: 'create',
          id: idFor('account', served.newId),
          before: undefined,
          fields,
        } as const;
        const { logic } = served;
        if (logic === undefined) return create(served, ask, write.id, fields);
        return logic.write(served, ask, [write], (within, own, [after = fields]) =>
          create(within, own, write.id, after),
        );
      },
    };
    return revised(answersForms === undefined ? operation : { ...operation, answersForms }, revise);
  };
}

function create(served: Served, ask: Ask, id: string, fields: FieldsOrWritten): MaybePromise<Result> {
  const at = served.clock();
  const times = { createdAt: at, updatedAt: at, deletedAt: null };
  const next = nextRow(served, { id, fields, owner: id, ...times });
  const location = `${served.path}/${id}`;
  const made = madeOf(served, ask.principal, next, {
    ...{ created: true, location, modifiedAt: at, validated: true },
  });
  const changes = [{ table: served.collection.name, id, expect: { absent: true }, next } as const];
  return commitUnit(served, ask, { changes, events: [] }, made, []);
}

// Revises a change of an account that a request asks for, before hooks run: its address, and the rights of the caller over the account.
// Hooks may change what the caller may not.

function reviseUser(administering: Pick<Administering, 'refusalOf'>): Revise {
  return async (revision) => {
    const found = await reviseEmail(revision);
    if ('refused' in found) return found;
    const { ask, before } = revision;
    const next = { doc: JSON.stringify(found.fields), owner: before?.owner ?? null };
    const refused = administering.refusalOf(ask.principal, { before, next });
    return refused === undefined ? found : { refused };
  };
}

/**
 * The address is stored in its one spelling, so that it stays unique, and no longer taken for verified once it has changed, unless the
 * same request says so.
 */
const reviseEmail: Revise = ({ before, content, fields }) => {
  const email = normalizeEmail(String(fields.email));
  if (email === undefined) return { refused: emailFault };
  if (before === undefined) return { fields: { ...fields, email } };
  const stood = readUser(before.doc).email;
  if (stood === email || names(content, 'emailVerified')) return { fields: { ...fields, email } };
  return { fields: { ...fields, email, emailVerified: false } };
};

/** True if the content of a PUT or a PATCH has the member. */
function names(content: unknown, member: string): boolean {
  if (typeof content !== 'object' || content === null) return false;
  if (!('format' in content && 'value' in content)) return Object.hasOwn(content, member);
  const { format, value } = content;
  if (format !== 'json-patch') return names(value, member);
  return (
    Array.isArray(value) &&
    value.some(({ op, path }: { op?: unknown; path?: unknown }) => op !== 'test' && path === `/${member}`)
  );
}

// Removes what a deleted account leaves: its password, sessions, identities at providers, mailed codes, saved views, and its keys with their
// secrets. All
// of it is void from the moment that the account is removed, because every verifier reads the account. It is removed in the unit of the
// deletion as far as that stays small, the rest right after. What the account created in the collections of the application stays.

/** Rows of each kind that go in one unit. */
const removedPerUnitMax = keysPerUnitMax;
/** Units after the deletion; each removes up to `removedPerUnitMax` of each kind, and a lost race repeats one. */
const unitsMax = 1000;

type AccountRemoval = {
  /**
   * Changes that remove what the account leaves, up to `removedPerUnitMax` of each kind.
   * @param entryOf the entry of the audit trail about the revocation of a key
   */
  changes(user: string, entryOf: (key: string) => Change): Promise<readonly Change[]>;
  /** Codes mailed to the account, which a change of its address and its disabling make void. */
  codes(user: string): Promise<readonly Change[]>;
  /** Removes what is left of an account that is gone; does nothing for one that is not. */
  clear(user: string, entryOf: (key: string) => Change): Promise<void>;
};

function createAccountRemoval(store: Store, sessions: Pick<Sessions, 'endOfUser'>): AccountRemoval {
  const codes = (user: string) => removalOfOwned(store, mailCodesTable, user);

  async function changes(user: string, entryOf: (key: string) => Change): Promise<readonly Change[]> {
    const parts = await Promise.all([
      removalOf(store, passwordsTable, user),
      removalOf(store, secondFactorsTable, user),
      sessions.endOfUser(user, null).then((ends) => ends.slice(0, removedPerUnitMax)),
      removalOfOwned(store, identitiesTable, user),
      codes(user),
      removalOfOwned(store, viewsTable, user),
      removalOfOwned(store, viewOwnersTable, user),
      createKeysOfOwner(store, entryOf).removal(user),
    ]);
    return parts.flat();
  }

  return {
    changes,
    codes,
    async clear(user, entryOf) {
      for (let unit = 0; unit < unitsMax; unit += 1) {
        if ((await store.read(usersTable, user)) !== undefined) return;
        const left = await changes(user, entryOf);
        if (left.length === 0) return;
        await store.commit({ changes: left, events: [] });
      }
    },
  };
}

/** The removal of a row, where there is one. */
async function removalOf(store: Store, table: string, id: string): Promise<readonly Change[]> {
  const row = await store.read(table, id);
  return row === undefined ? [] : [{ table, id, expect: { rev: row.rev }, next: null }];
}

/** Finds rows by an index and one by one, since what such a row holds is the business of its writer. */
async function removalOfOwned(store: Store, table: string, owner: string): Promise<readonly Change[]> {
  const filter = { op: 'eq', field: ownerField, value: owner } as const;
  const plan = store.plan({ table, filter, sort: byId, limit: 1 });
  const ids = await firstIds(plan);
  const removals = await Promise.all(ids.map((id) => removalOf(store, table, id)));
  return removals.flat();
}

async function firstIds(plan: Plan): Promise<readonly string[]> {
  const ids: string[] = [];
  for await (const { last } of pagesOf(plan)) {
    if (last !== null) ids.push(String(last[0]));
    if (ids.length >= removedPerUnitMax) break;
  }
  return ids;
}

/**
 * `/users`: accounts as a collection (§5.1). Administrators list, make and change them; an account reads, renames and deletes itself.
 * Roles, scopes and whatever else decides what it may do are for administrators alone (`readOnly` in collections.ts).
 */

import { Type } from 'typebox';
import { actionResource, type Done } from '../../kernel/action.ts';
import { pathParameter } from '../../kernel/documentation.ts';
import type { Ask, Operation, Proposal, Resource } from '../../kernel/resource.ts';
import { isAdministrator } from '../../model/principal.ts';
import { revised } from '../../resources/collection/revised.ts';
import type { Accompaniment, Served, Written } from '../../resources/collection/served.ts';
import { type ServedCollection, type Serving, serveCollection } from '../../resources/collection/serving.ts';
import { memberStanding } from '../../resources/collection/standing.ts';
import type { Change } from '../../store/store.ts';
import { usersCollection } from '../account-collections.ts';
import { examplePassword, newPasswordSchema } from '../account-schemas.ts';
import { passwordsTable, readUser, type User } from '../account-tables.ts';
import { administratorsOnly } from '../administrators-only.ts';
import type { AuditFact } from '../audit-fact.ts';
import { commitRetried } from '../commit-retried.ts';
import { factOfAsk } from '../fact-of-ask.ts';
import { newPasswordFault } from '../passwords/new-password.ts';
import { passwordChange, readPassword } from '../passwords/password-row.ts';
import { reviseEmail } from './change-email.ts';
import { createUserOperation } from './create-user.ts';
import { createLeavings, type Leavings } from './leavings.ts';
import type { UserResourcesOptions } from './user-route-options.ts';

export function userResources(options: UserResourcesOptions, serving: Serving): ServedCollection {
  const leavings = createLeavings(serving.store, options.sessions);
  const plain = serveCollection(serving, usersCollection, {
    announced: false,
    accompany: accompanyUser(options, leavings),
    listPermission: administratorsOnly,
    create: createUserOperation,
    documentation: {
      names: { singular: 'User', plural: 'Users', one: 'an account', many: 'accounts' },
      idPrefix: 'usr_',
    },
  });
  return {
    ...plain,
    resources: [
      ...plain.resources.map((resource) => adapted(resource, options, leavings)),
      setPasswordResource(options, plain.served, leavings),
    ],
  };
}

function adapted(resource: Resource, options: UserResourcesOptions, leavings: Leavings): Resource {
  const isBulkDelete = resource.pattern.endsWith('/bulk-delete');
  const operations = [...resource.operations].map(([method, operation]) => {
    if (method === 'PUT' || method === 'PATCH') return [method, revised(operation, reviseEmail)] as const;
    if (method === 'DELETE') return [method, clearing(operation, options, leavings, idOfMember)] as const;
    if (isBulkDelete) return [method, clearing(operation, options, leavings, idsNamed)] as const;
    return [method, operation] as const;
  });
  return { ...resource, operations: new Map(operations) };
}

type IdsOf = (ask: Ask, proposal: Proposal | undefined) => readonly string[];

const idOfMember: IdsOf = ({ captures }) => captures;

const idsNamed: IdsOf = (_ask, proposal) => (proposal as { readonly ids?: readonly string[] })?.ids ?? [];

/** A deletion, and after it the end of what did not fit into its unit. */
function clearing(
  operation: Operation,
  options: UserResourcesOptions,
  leavings: Leavings,
  idsOf: IdsOf,
): Operation {
  const { act } = operation;
  if (act === undefined) throw new Error('a deletion requires an act stage');
  return {
    ...operation,
    act: async (ask, standing, proposal) => {
      const result = await act(ask, standing, proposal);
      if ('made' in result)
        for (const id of idsOf(ask, proposal)) {
          await leavings.clear(id, revocationEntry(options, ask));
        }
      return result;
    },
  };
}

type Told = Pick<AuditFact, 'type' | 'detail'>;

/**
 * What goes with a change of an account, in one unit: the entries of the audit trail, the end of its sessions when it is disabled, of
 * the codes mailed to an address that is no longer its own, and of all that it leaves behind when it is deleted.
 */
function accompanyUser(
  options: Pick<UserResourcesOptions, 'audit' | 'addressOf' | 'sessions' | 'generationChanges'>,
  leavings: Leavings,
): (written: Written) => Promise<Accompaniment> {
  const { audit, addressOf, sessions, generationChanges } = options;

  async function consequences(
    ask: Written['ask'],
    id: string,
    before: User,
    after: User | undefined,
  ): Promise<readonly Change[]> {
    if (after === undefined) {
      return [...(await leavings.gather(id, revocationEntry(options, ask))), ...generationChanges()];
    }
    const told = mayBeToldOtherwise(before, after) ? generationChanges() : [];
    const ends = after.disabled && !before.disabled ? await sessions.endOfUser(id, null) : [];
    const codes = before.email === after.email ? [] : await leavings.codes(id);
    return [...ends, ...codes, ...told];
  }

  return async ({ ask, id, before, next }) => {
    if (next === null && !mayLeave(ask)) return { refused: { code: 'forbidden', message: keyOnly } };
    const stood = before === undefined ? undefined : readUser(before.doc);
    const after = next === null ? undefined : readUser(next.doc);
    const entries = factsOf(stood, after).map((told) =>
      audit.entry(factOfAsk(ask, addressOf, { ...told, subject: id })),
    );
    const changes = stood === undefined ? [] : await consequences(ask, id, stood, after);
    return { changes: [...changes, ...entries] };
  };
}

/** @returns the entry of the audit trail about a key that goes with its account */
function revocationEntry(
  { audit, addressOf }: Pick<UserResourcesOptions, 'audit' | 'addressOf'>,
  ask: Written['ask'],
): (key: string) => Change {
  const detail = { reason: 'account.deleted' };
  return (key) => audit.entry(factOfAsk(ask, addressOf, { type: 'key.revoked', subject: key, detail }));
}

const keyOnly = 'log in to delete your account; a key cannot';

/** A key is for programs: one that leaks must not take its owner's account with it. */
function mayLeave({ principal, known }: Written['ask']): boolean {
  return isAdministrator(principal) || (known !== undefined && known.scheme !== 'key');
}

/** One fact for each kind of change; the rest of the members are only named, never shown. */
function factsOf(before: User | undefined, after: User | undefined): readonly Told[] {
  if (after === undefined) return [{ type: 'account.deleted' }];
  if (before === undefined) return [{ type: 'account.registered', detail: grants(after) }];
  const facts: Told[] = [];
  if (before.disabled !== after.disabled) {
    facts.push({ type: after.disabled ? 'account.disabled' : 'account.enabled' });
  }
  if (!sameGrants(before, after)) facts.push({ type: 'account.roles_changed', detail: grants(after) });
  const members = (['email', 'name', 'emailVerified', 'tenant'] as const).filter(
    (member) => before[member] !== after[member],
  );
  if (members.length > 0) facts.push({ type: 'account.changed', detail: { members } });
  return facts;
}

/** Whether the endpoints of the account may be told of other events than before. */
function mayBeToldOtherwise(before: User, after: User): boolean {
  const isSame = before.tenant === after.tenant && before.disabled === after.disabled;
  return !isSame || !sameGrants(before, after);
}

function grants({ roles, scopes }: User): Told['detail'] & object {
  return { roles, scopes };
}

function sameGrants(before: User, after: User): boolean {
  return JSON.stringify(grants(before)) === JSON.stringify(grants(after));
}

const lost: Done = { refused: { code: 'unavailable' } };

/**
 * POST to `/users/{id}/password`: an administrator sets the password of an account, which ends all of its sessions and makes every
 * code that was mailed to it void. One's own password is changed at `/auth/password`, which asks for the old one.
 */
function setPasswordResource(options: UserResourcesOptions, served: Served, leavings: Leavings): Resource {
  return actionResource(
    {
      path: `${served.path}/{id}/password`,
      parameters: [pathParameter('id', 'Id of the account.')],
      tag: served.collection,
      name: 'UserPassword',
      noun: 'the password of an account',
      id: 'setUserPassword',
      summary: 'Set the password of an account',
      description:
        'Administrators only. Ends all sessions of the account and revokes the codes that were mailed to it.',
      input: {
        name: 'PasswordSet',
        schema: Type.Object({ password: newPasswordSchema(options) }),
        example: { password: examplePassword },
      },
      codes: [],
      permission: administratorsOnly,
      standing: (ask) => memberStanding(served, ask, 'update'),
      mayBeMissing: true,
      handler: async (ask, { password }) => {
        const fault = newPasswordFault(password, options);
        if (fault !== undefined) {
          const errors = [{ pointer: '/password', message: fault }];
          return { refused: { code: 'validation_failed', errors } };
        }
        return setPassword(options, served, leavings, ask, await options.hashPassword(password));
      },
    },
    options.limits,
  );
}

/** Where the account is deleted meanwhile, its password is as dead as the rest of what it leaves. */
async function setPassword(
  options: UserResourcesOptions,
  { store, clock }: Served,
  leavings: Leavings,
  ask: Ask,
  hash: string,
): Promise<Done> {
  const id = ask.captures[0] ?? '';
  const fact = factOfAsk(ask, options.addressOf, { type: 'password.changed', subject: id });
  const attempt = async () => {
    const before = await readPassword(store, id);
    const at = Math.max(clock(), before?.row.updatedAt ?? 0);
    const changes = [
      passwordChange(id, before, hash, at),
      ...(await options.sessions.endOfUser(id, null)),
      ...(await leavings.codes(id)),
      options.audit.entry(fact),
    ];
    return { changes, result: { content: null } };
  };
  return commitRetried<Done>(store, { table: passwordsTable, id }, attempt, () => lost);
}

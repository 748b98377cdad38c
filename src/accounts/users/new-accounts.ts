/**
 * New accounts of registrations and of sign-ins by a provider (§5.7): the fields of the application that a registration gives, and the hook
 * `beforeWrite` of accounts. A registration may set what the account could change itself right after: nothing that a rule reserves.
 */
import type { TObject } from 'typebox';
import { accountDefaults, type ResolvedAccounts } from '../../config/accounts.ts';
import type { FieldError, Problem } from '../../http/problem.ts';
import type { Json } from '../../http/syntax/json.ts';
import { formatJsonPointer } from '../../http/syntax/json-pointer.ts';
import type { Ask } from '../../kernel/resource.ts';
import { normalizeEmail } from '../../mail/email.ts';
import { permission, permits, type Subject } from '../../model/access.ts';
import type { Collection } from '../../model/collection.ts';
import { idPrefixes } from '../../model/id.ts';
import { type Authenticated, authenticated } from '../../model/principal.ts';
import { takenProblem } from '../../resources/collection/commit.ts';
import type { Served } from '../../resources/collection/served-collection.ts';
import { readOnlyMessage, withheldFrom } from '../../resources/document/closed-members.ts';
import { type FieldsOrWritten, WrittenFields } from '../../resources/document/representation.ts';
import { overtaken } from '../../store/lines.ts';
import type { Change, Commit, Overtaken, Row, Store } from '../../store/store.ts';
import type { UserFields } from '../account-tables.ts';
import { userRow } from './user-row.ts';

export type NewAccount = { readonly id: string; readonly fields: UserFields };

type Refused = { readonly refused: Problem };

export type NewAccounts = {
  readonly users: Collection;
  /** Accounts have neither fields nor a hook of the application. */
  readonly isPlain: boolean;
  /** The schema of the fields that a registration may set; undefined: none. */
  readonly registrable: TObject | undefined;
  /** Called once, when accounts are served, which is before any request. */
  serveBy(served: Served): void;
  /**
   * Judges the fields that a registration gives, and fills in the defaults of those that it leaves out.
   * @param fields the members of Comity
   */
  judge(account: NewAccount, given: Readonly<Record<string, unknown>>): Promise<NewAccount | Refused>;
  /**
   * Runs the hook and commits the account, in one unit with all that `make` adds.
   * @param make gets the account as the hook left it; runs again after a lost race
   * @param before the row of an account that changes; absent: a new one
   * @returns what `make` returned with the changes
   * @throws StoreUnavailable
   */
  commit<T>(
    ask: Ask,
    store: Pick<Store, 'commit'>,
    account: NewAccount,
    make: Make<T>,
    before?: Row,
  ): Promise<Committed<T>>;
};

export function createNewAccounts({
  users,
  fieldNames,
}: Pick<ResolvedAccounts, 'users' | 'fieldNames'>): NewAccounts {
  let serving: Served | undefined;
  const served = (): Served => {
    if (serving === undefined)
      throw new Error('new accounts require the collection of accounts to be served');
    return serving;
  };
  return {
    users,
    serveBy: (by) => {
      serving = by;
    },
    isPlain: fieldNames.size === 0 && users.hooks === undefined,
    registrable: registrableOf(users, fieldNames),
    judge: async (account, given) => (fieldNames.size === 0 ? account : judge(served(), account, given)),
    commit: (ask, store, account, make, before) =>
      users.hooks?.beforeWrite === undefined
        ? commitPlainly(store, account, make)
        : commitWithHook(served(), ask, { ...account, before }, make),
  };
}

/** Leaves out what no account could change by itself: a registration that names it is refused for an unknown member. */
function registrableOf(users: Collection, fieldNames: ReadonlySet<string>): TObject | undefined {
  const itself = authenticated({ id: idPrefixes.account, scopes: accountDefaults.scopes });
  if (permission(users.access.update, 'update', itself) === 'denied') return undefined;
  const names = [...fieldNames].filter((name) => {
    const mayWrite = permission(users.readOnly.get(name) ?? 'public', 'update', itself) !== 'denied';
    return mayWrite && permission(users.hidden.get(name) ?? 'public', 'read', itself) !== 'denied';
  });
  if (names.length === 0) return undefined;
  const { schema } = users;
  const copy: object = Object.defineProperties({}, Object.getOwnPropertyDescriptors(schema));
  return Object.assign(copy, {
    properties: Object.fromEntries(names.map((name) => [name, schema.properties[name]])),
    required: (schema.required ?? []).filter((name) => names.includes(name)),
  }) as unknown as TObject;
}

async function judge(
  served: Served,
  { id, fields }: NewAccount,
  given: Readonly<Record<string, unknown>>,
): Promise<NewAccount | Refused> {
  const { collection, validator } = served;
  const itself = authenticated({ id, scopes: accountDefaults.scopes });
  const whole = { ...fields, ...given };
  const closed = closedFields(collection, itself, whole, Object.keys(given));
  if (closed.length > 0) return { refused: { code: 'field_unpatchable', errors: closed } };
  const filled = (validator.fillDefaults?.(whole as unknown as Json) ?? whole) as UserFields;
  const { missing, invalid } = validator.check(filled);
  // What a registration cannot set, the hook may.
  const left = collection.hooks?.beforeWrite === undefined ? missing : missing.filter(isOpen);
  if (left.length > 0) return { refused: { code: 'field_missing', errors: [...left, ...invalid] } };
  if (invalid.length > 0) return { refused: { code: 'validation_failed', errors: invalid } };
  const next = userRow(collection, id, { ...fields, ...given }, 0, 0);
  const unseen = await served.unseenReference(itself, { before: undefined, next });
  if (unseen === undefined) return { id, fields: filled };
  const errors = [{ pointer: formatJsonPointer([unseen]), message: 'names a resource that does not exist' }];
  return { refused: { code: 'reference_missing', errors } };

  function isOpen({ pointer }: FieldError): boolean {
    return closedFields(collection, itself, whole, [pointer.slice(1)]).length === 0;
  }
}

/** Those of the names that the account could not change right after, or not see. */
function closedFields(
  collection: Collection,
  itself: Authenticated,
  fields: Readonly<Record<string, unknown>>,
  names: readonly string[],
): readonly FieldError[] {
  const subject: Subject = { owner: itself.id, member: (name) => fields[name] };
  const mayUpdate = permits(collection.access.update, 'update', itself, subject);
  const { readOnly, hidden } = withheldFrom(collection, { principal: itself, owner: itself.id }, fields);
  return names
    .filter((name) => !mayUpdate || readOnly.has(name) || hidden.has(name))
    .map((name) => ({ pointer: formatJsonPointer([name]), message: readOnlyMessage }));
}

type Make<T> = (account: NewAccount) => Promise<{ readonly changes: readonly Change[]; readonly result: T }>;
type Committed<T> = { readonly result: T } | Refused | Overtaken;

async function commitPlainly<T>(
  store: Pick<Store, 'commit'>,
  account: NewAccount,
  make: Make<T>,
): Promise<Committed<T>> {
  const { changes, result } = await make(account);
  const unit = { changes, events: [] };
  const commit = await store.commit(unit);
  if (commit.outcome === 'committed') return { result };
  if (commit.outcome === 'superseded') return overtaken(unit, commit);
  if (commit.outcome === 'depended-on') throw new Error('a new account removes nothing');
  return { refused: refusalOf(commit) };
}

/** The rules of the store that a new account breaks. */
function refusalOf(commit: Extract<Commit, { outcome: 'taken' | 'dangling' }>): Problem {
  if (commit.outcome === 'taken') return takenProblem(commit.fields);
  const pointer = formatJsonPointer([commit.field]);
  return {
    code: 'reference_missing',
    errors: [{ pointer, message: 'names a resource that does not exist' }],
  };
}

async function commitWithHook<T>(
  served: Served,
  ask: Ask,
  account: NewAccount & { readonly before: Row | undefined },
  make: Make<T>,
): Promise<Committed<T>> {
  const { logic } = served;
  if (logic === undefined) throw new Error('the hook of accounts requires the logic of their collection');
  let kept: { readonly result: T } | undefined;
  const { before } = account;
  const action = before === undefined ? 'create' : 'update';
  const write = { action, id: account.id, before, fields: account.fields } as const;
  const written = await logic.write(served, ask, [write], async (within, _own, [after]) => {
    const fields = membersOf(after ?? account.fields);
    const { missing } = served.validator.check(fields);
    if (missing.length > 0) return { refused: { code: 'field_missing', errors: missing } };
    const { changes, result } = await make({ id: account.id, fields });
    const committed = await commitPlainly(within.store, account, async () => ({ changes, result }));
    if (!('result' in committed)) return committed;
    kept = committed;
    const doc = changes.find(({ table, id }) => table === served.collection.name && id === account.id)?.next
      ?.doc;
    const made = {
      outcome: 'made',
      created: before === undefined,
      location: null,
      doc: doc ?? null,
      modifiedAt: null,
    } as const;
    return { made: { ...made, validated: false }, rev: 0 };
  });
  if ('postponed' in written) throw new Error('the creation of an account deletes nothing');
  if (!('made' in written)) return written;
  if (kept === undefined) throw new Error('a committed account requires what was made of it');
  return kept;
}

function membersOf(after: FieldsOrWritten): UserFields {
  const fields = (after instanceof WrittenFields ? JSON.parse(after.text) : after) as UserFields;
  demandAddress(fields);
  return fields;
}

/** A hook may change the address of an account, which stays unique only in its one spelling. @throws Error */
export function demandAddress({ email }: Pick<UserFields, 'email'>): void {
  if (normalizeEmail(email) !== email)
    throw new Error(
      `the hook beforeWrite of accounts left ${JSON.stringify(email)} as the address, which is none`,
    );
}

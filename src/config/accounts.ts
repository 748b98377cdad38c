/**
 * Accounts with fields of their own (§5.7): `accounts: { fields: Type.Object({ organisationId: ... }), ... }` of a configuration. The result
 * is the collection `users`: the members of Comity, the fields of the application, and the access rules of both.
 */
import type { Static, TObject } from 'typebox';
import type { Rule } from '../model/access.ts';
import type { Collection, CollectionDeclaration, TextMember } from '../model/collection.ts';
import type { Account, ByField, FieldName } from '../model/logic/collection-calls.ts';
import type { Hooks } from '../model/logic/hooks.ts';
import { accountSchema, administratorsMembers } from './account-members.ts';
import { type Referring, resolveBuiltIn } from './collections.ts';

/** The members of an account with the fields of an application. @template S the schema of the fields */
export type AccountWith<S extends TObject> = Account & Static<S>;

/**
 * @template S the schema of the fields
 * @template R the calls on all collections; never: not known
 */
export type AccountsDeclaration<S extends TObject = TObject, R = never> = {
  /** TypeBox object of the fields that every account has besides those of Comity. */
  readonly fields: S;
  /** An account always reads itself. By default nobody else does, and an account changes and deletes itself. */
  readonly access?: {
    readonly read?: Rule<AccountWith<S>>;
    readonly update?: Rule<AccountWith<S>>;
    readonly delete?: Rule<AccountWith<S>>;
  };
  /** Who writes a field, among those who may update the account. Default: administrators, and accounts by `admin`. */
  readonly readOnly?: ByField<(keyof Static<S> & string) | 'name', Rule<AccountWith<S>>>;
  /** Who sees a member; for others it does not exist. */
  readonly hidden?: ByField<keyof AccountWith<S> & string, Rule<AccountWith<S>>>;
  readonly references?: ByField<
    TextMember<Static<S>>,
    { readonly collection: string; readonly countAs?: string }
  >;
  readonly indexes?: readonly (
    | FieldName<AccountWith<S>>
    | 'createdAt'
    | 'updatedAt'
    | readonly (FieldName<AccountWith<S>> | 'id' | 'createdAt' | 'updatedAt')[]
  )[];
  readonly unique?: readonly FieldName<Static<S>>[];
  /** Texts that `q` searches. Default: `email`, `name`, `tenant` and the texts among the fields. */
  readonly search?: readonly TextMember<AccountWith<S>>[];
  /** `beforeWrite` also runs for registrations and for accounts that a sign-in creates. */
  readonly hooks?: Hooks<AccountWith<S>, R>;
  /**
   * Accounts with the role administer the accounts that match: they create, change, disable and delete them and set their passwords, and
   * never give or touch more rights than they have.
   */
  readonly admin?: { readonly role: string; readonly where: Rule<AccountWith<S>> };
};

/** Accounts as they are served. */
export type ResolvedAccounts = {
  /** The collection `/users`. */
  readonly users: Collection;
  /** The same without the rights that `admin` gives. */
  readonly unadministered: Collection;
  /** The same for an account that is being created: whether it is one that `admin` names shows when it is complete. */
  readonly creation: Collection;
  /** Names of the application's fields. */
  readonly fieldNames: ReadonlySet<string>;
  /** Who else administers accounts, and which. */
  readonly admin: { readonly role: string; readonly rule: Rule } | undefined;
  /** Lists follow the access rules; false: only administrators list accounts. */
  readonly isListed: boolean;
};

/** A declaration whose mistakes have been found: plain values. */
type Declared = Omit<AccountsDeclaration, 'access' | 'readOnly' | 'hidden' | 'search' | 'admin'> & {
  readonly access?: Readonly<Partial<Record<'read' | 'update' | 'delete', Rule>>>;
  readonly readOnly?: Readonly<Record<string, Rule>>;
  readonly hidden?: Readonly<Record<string, Rule>>;
  readonly search?: readonly string[];
  readonly admin?: { readonly role: string; readonly where: Rule };
};

/**
 * @param declaration without mistakes (inspect-accounts.ts); undefined: accounts have the members of Comity alone
 * @param referring references of all collections, also of accounts
 */
export function resolveAccounts(
  declaration: AccountsDeclaration | undefined,
  referring: readonly Referring[] = [],
): ResolvedAccounts {
  const declared = (declaration ?? {}) as Partial<Declared>;
  const { access, admin } = declared;
  const administers: Rule | undefined =
    admin === undefined ? undefined : { allOf: [{ role: admin.role }, admin.where] };
  const users = usersOf(declared, administers, referring);
  return {
    users,
    unadministered: administers === undefined ? users : usersOf(declared, undefined, referring),
    creation: admin === undefined ? users : usersOf(declared, { role: admin.role }, referring),
    fieldNames: new Set(Object.keys(declared.fields?.properties ?? {})),
    admin: admin === undefined ? undefined : { role: admin.role, rule: administeringRule(users) },
    isListed: access?.read !== undefined || admin !== undefined,
  };
}

/** The resolved rule: the last part of the one for updates. */
function administeringRule({ access: { update } }: Collection): Rule {
  const last = typeof update === 'object' && 'anyOf' in update ? update.anyOf.at(-1) : undefined;
  if (last === undefined) throw new Error('accounts that others administer require a rule for that');
  return last;
}

function usersOf(
  declared: Partial<Declared>,
  administers: Rule | undefined,
  referring: readonly Referring[],
): Collection {
  const collection = resolveBuiltIn('users', accountsCollection(declared, administers), referring);
  // The member `tenant` gives rules their meaning; it is not the tenant of whoever creates the account.
  return { ...collection, tenantField: undefined, unpatchable: nothing };
}

const nothing: ReadonlySet<string> = new Set();

/** The declaration of the collection that accounts are. */
export function accountsCollection(
  declared: Partial<Declared>,
  administers: Rule | undefined,
): CollectionDeclaration {
  const { fields, access = {}, hidden = {}, references = {}, indexes = [], unique = [], hooks } = declared;
  const or = (...rules: readonly (Rule | undefined)[]): Rule => {
    const [first = 'administrator', ...others] = rules.filter((rule) => rule !== undefined);
    return others.length === 0 ? first : { anyOf: [first, ...others] };
  };
  const closed = or('administrator', administers);
  return {
    description:
      fields === undefined
        ? 'Accounts. Administrators can read and change all of them, other callers only their own.'
        : 'Accounts. Administrators can read and change all of them, other callers their own and those that the access rules name.',
    schema: schemaOf(fields),
    access: {
      read: or('owner', access.read, administers),
      create: closed,
      update: or(access.update ?? 'owner', administers),
      delete: or(access.delete ?? 'owner', administers),
    },
    tenantField: 'tenant',
    readOnly: {
      ...Object.fromEntries(administratorsMembers.map((name) => [name, closed])),
      // A verified address leads to the account at a sign-in by a provider.
      emailVerified: 'administrator',
      ...Object.fromEntries(Object.keys(fields?.properties ?? {}).map((name) => [name, closed])),
      ...declared.readOnly,
    },
    hidden,
    references: references as NonNullable<CollectionDeclaration['references']>,
    indexes: indexes as NonNullable<CollectionDeclaration['indexes']>,
    unique: ['email', ...unique],
    search: declared.search ?? searched(fields, { ...hidden, ...references }),
    examples: (fields?.required ?? []).length === 0 ? [{ email: 'ada@shop.example', name: 'Ada' }] : [],
    ...(hooks === undefined
      ? {}
      : { hooks: hooks as unknown as NonNullable<CollectionDeclaration['hooks']> }),
  };
}

function schemaOf(fields: TObject | undefined): TObject {
  if (fields === undefined) return accountSchema;
  const own = new Set(Object.keys(fields.properties));
  // TypeBox keeps internal data in properties that are not enumerable.
  const copy: object = Object.defineProperties({}, Object.getOwnPropertyDescriptors(fields));
  const required = [
    ...(accountSchema.required ?? []),
    ...(fields.required ?? []).filter((name) => own.has(name)),
  ];
  return Object.assign(copy, {
    properties: { ...accountSchema.properties, ...fields.properties },
    required,
  }) as unknown as TObject;
}

/** The texts of an account that anyone who sees it sees. */
function searched(fields: TObject | undefined, left: Readonly<Record<string, unknown>>): readonly string[] {
  const texts = Object.entries(fields?.properties ?? {}).filter(
    ([, schema]) => (schema as { readonly type?: unknown }).type === 'string',
  );
  return ['email', 'name', 'tenant', ...texts.map(([name]) => name)].filter(
    (name) => !Object.hasOwn(left, name),
  );
}

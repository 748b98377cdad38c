/**
 * Accounts with fields of their own (§5.7): `accounts: { fields: Type.Object({ organisationId: ... }), ... }` of a configuration. The result
 * is the collection `users`: the members of Comity, the fields of the application, and the access rules of both. Every mistake is a sentence
 * that begins with the name of the member.
 */
import { type Static, type TObject, Type } from 'typebox';
import { permission, type Rule } from '../model/access.ts';
import type { Collection, CollectionDeclaration, TextMember, Unique } from '../model/collection.ts';
import { idPrefixes } from '../model/id.ts';
import type { Account, ByField, FieldName } from '../model/logic/collection-calls.ts';
import type { Hooks } from '../model/logic/logic.ts';
import type { PresentationDeclaration } from '../model/presentation.ts';
import { administratorRole, authenticated, type Scope, scopes } from '../model/principal.ts';
import { type Referring, resolveBuiltIn } from './collections.ts';
import { fieldsOf } from './fields.ts';
import { inspectRule } from './inspect-access.ts';
import { inspectProperties, inspectRulesAndIndexes, inspectSchema, isSchema } from './inspect-collection.ts';
import { presentationOf } from './inspect-presentation.ts';
import { sizeMistakes } from './inspect-schema.ts';
import { type Inspection, isRecord, kindOf, suggestion } from './inspection.ts';

/** The members of an account with the fields of an application. @template S the schema of the fields */
type AccountWith<S extends TObject> = Account & Static<S>;

/**
 * @template S the schema of the fields
 * @template R the calls on all collections; never: not known
 */
export type AccountsDeclaration<S extends TObject = TObject, R = never> = PresentationDeclaration<
  AccountWith<S>,
  keyof AccountWith<S> & string
> & {
  /** TypeBox object of the fields that every account has besides those of Comity. Default: none. */
  readonly fields?: S;
  /** An account always reads itself. By default no other does, and an account changes and deletes itself. */
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
  readonly unique?: readonly Unique<FieldName<Static<S>>>[];
  /** Texts that `q` searches. Default: `email`, `name`, `tenant` and the texts among the fields. */
  readonly search?: readonly TextMember<AccountWith<S>>[];
  /** `beforeWrite` also runs for registrations and for accounts that a sign-in creates. */
  readonly hooks?: Hooks<AccountWith<S>, R>;
  /**
   * Accounts with the role administer the accounts that match: they create, invite, change, disable and delete them and set their
   * passwords, and never give or touch more rights than they have. Several roles may administer.
   */
  readonly admin?: Administration<S> | readonly Administration<S>[];
  /** The roles that each role of `admin` gives and takes. Default: those that the account itself has. */
  readonly grants?: Readonly<Record<string, readonly string[]>>;
  /** Opens `/auth/invite`. Default true. */
  readonly invitations?: boolean;
  /**
   * Opens logins, and where registration is open registrations, by mail: `/auth/code` mails a code to type, `/auth/link` a link to
   * COMITY_MAIL_LOGIN_URL. Default: neither.
   */
  readonly passwordless?: { readonly code?: boolean; readonly link?: boolean };
  /** Accounts with one of the roles need a second factor, whatever COMITY_SECOND_FACTOR says. */
  readonly secondFactor?: { readonly required: readonly string[] };
  /** Opens `/auth/me/email`, by which the owner of an account changes its address. Default true. */
  readonly emailChange?: boolean;
};

type Administration<S extends TObject> = {
  readonly role: string;
  readonly where: Rule<AccountWith<S>>;
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
  /** Who else administers accounts, which, and the roles that they give; undefined: their own. */
  readonly admins: readonly { readonly rule: Rule; readonly grants: ReadonlySet<string> | undefined }[];
  /** The roles of `admins`, in their order. */
  readonly adminRoles: readonly string[];
  /** Roles whose accounts need a second factor. */
  readonly factorRoles: ReadonlySet<string>;
  /** There are accounts that administer others without being administrators. */
  readonly isAdministered: boolean;
  /** Lists follow the access rules; false: only administrators list accounts. */
  readonly isListed: boolean;
  readonly passwordless: { readonly code: boolean; readonly link: boolean };
  readonly invitations: boolean;
  readonly emailChange: boolean;
};

/** A declaration whose mistakes have been found: plain values. */
type Declared = Omit<AccountsDeclaration, 'access' | 'readOnly' | 'hidden' | 'search' | 'admin'> & {
  readonly access?: Readonly<Partial<Record<'read' | 'update' | 'delete', Rule>>>;
  readonly readOnly?: Readonly<Record<string, Rule>>;
  readonly hidden?: Readonly<Record<string, Rule>>;
  readonly search?: readonly string[];
  readonly admin?: Administering | readonly Administering[];
};

type Administering = { readonly role: string; readonly where: Rule };

/**
 * @param declaration without mistakes; undefined: accounts have the members of Comity alone
 * @param referring references of all collections, also of accounts
 */
export function resolveAccounts(
  declaration: AccountsDeclaration | undefined,
  referring: readonly Referring[] = [],
): ResolvedAccounts {
  const declared = (declaration ?? {}) as Partial<Declared>;
  const { access, admin, invitations = true, emailChange = true } = declared;
  const admins = listed(admin);
  const grants = new Map(Object.entries(declared.grants ?? {}));
  const users = usersOf(declared, anyOf(admins.map(administers)), referring);
  const isAdministered = admins.length > 0;
  return {
    users,
    unadministered: isAdministered ? usersOf(declared, undefined, referring) : users,
    creation: isAdministered
      ? usersOf(declared, anyOf(admins.map(({ role }) => ({ role }))), referring)
      : users,
    fieldNames: new Set(Object.keys(declared.fields?.properties ?? {})),
    admins: admins.map((each) => ({
      rule: administeringRule(usersOf(declared, administers(each), referring)),
      grants: grants.has(each.role) ? new Set(grants.get(each.role)) : undefined,
    })),
    adminRoles: admins.map(({ role }) => role),
    isAdministered,
    factorRoles: new Set(declared.secondFactor?.required),
    isListed: access?.read !== undefined || isAdministered,
    passwordless: { code: false, link: false, ...declared.passwordless },
    ...{ invitations, emailChange },
  };
}

function listed<T>(one: T | readonly T[] | undefined): readonly T[] {
  if (one === undefined) return [];
  return Array.isArray(one) ? one : [one as T];
}

function administers({ role, where }: Administering): Rule {
  return { allOf: [{ role }, where] };
}

function anyOf(rules: readonly Rule[]): Rule | undefined {
  return rules.length > 1 ? { anyOf: rules } : rules[0];
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
  // The member `tenant` gives rules their meaning; it is not the tenant of the principal that creates the account.
  return { ...collection, tenantField: undefined, unpatchable: nothing };
}

const nothing: ReadonlySet<string> = new Set();

/** The declaration of the collection that accounts are. */
function accountsCollection(
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
    unique: ['email', ...(unique as readonly Unique[])],
    search: declared.search ?? searched(fields, { ...hidden, ...references }),
    ...presentationOf(declared),
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

const knownProperties: ReadonlySet<string> = new Set<keyof AccountsDeclaration>([
  ...(['fields', 'access', 'readOnly', 'hidden', 'references', 'indexes'] as const),
  ...(['unique', 'search', 'hooks', 'admin', 'grants'] as const),
  ...(['invitations', 'passwordless', 'secondFactor', 'emailChange'] as const),
  ...(['labels', 'help', 'title', 'groups', 'display'] as const),
]);
/** The checks of collections call the fields so. */
const schemaAtBegin = /^schema\b/;
const accessActions: ReadonlySet<string> = new Set(['read', 'update', 'delete']);

/**
 * @param collections names of the declared collections
 * @returns the declaration; undefined where there is none, or one with mistakes
 */
export function inspectAccounts(
  declared: unknown,
  collections: Iterable<string>,
  mistakes: string[],
  warn: (sentence: string) => void,
): AccountsDeclaration | undefined {
  if (declared === undefined) return undefined;
  const before = mistakes.length;
  const refuse = (predicate: string): void =>
    void mistakes.push(`accounts.${predicate.replace(schemaAtBegin, 'fields')}`);
  if (!isRecord(declared)) {
    mistakes.push(`accounts must be an object, not ${kindOf(declared)}`);
    return undefined;
  }
  for (const name of Object.keys(declared)) {
    if (!knownProperties.has(name))
      mistakes.push(`accounts has no property "${name}"${suggestion(name, knownProperties)}`);
  }
  const { fields = Type.Object({}) } = declared;
  if (!isSchema({ schema: fields })) {
    refuse('fields must be a Type.Object({ ... })');
    return undefined;
  }
  const declaration = { ...declared, fields } as AccountsDeclaration & { readonly fields: TObject };
  const sizes = sizeMistakes(declaration.fields, 'fields');
  if (sizes.length > 0) {
    for (const mistake of sizes) refuse(mistake);
    return undefined;
  }
  inspectFields(declaration.fields, refuse);
  const places = new Set([...collections, 'users']);
  const shared = {
    name: 'users',
    collections: places,
    refuse,
    warn: (text: string) => warn(`accounts.${text}`),
  };
  if (declared.fields !== undefined)
    inspectProperties({
      ...shared,
      declaration: { schema: declaration.fields },
      fields: fieldsOf(declaration.fields),
    });
  inspectSchema({
    ...shared,
    declaration: { schema: declaration.fields },
    fields: fieldsOf(declaration.fields),
  });
  const { access, readOnly = {}, hidden, references, indexes, unique, search, hooks } = declared;
  const { schema, tenantField } = accountsCollection({ fields: declaration.fields }, undefined);
  const inspection = {
    ...shared,
    declaration: {
      ...{ schema, readOnly, hidden, references, indexes, unique, search, hooks },
      ...presentationOf(declared),
      // Whether registrations can create accounts is judged below.
      access: isRecord(access ?? {}) ? { ...(access as object), create: 'administrator' } : access,
      tenantField,
    },
    fields: fieldsOf(schema),
  } as unknown as Inspection;
  inspectRulesAndIndexes(inspection);
  inspectActions(access, refuse);
  inspectReadOnly(readOnly, refuse);
  inspectAdmin(declared, inspection);
  inspectLogins(declared, refuse);
  if (mistakes.length > before) return undefined;
  warnOfRequired(declaration, inspection.warn);
  return declaration;
}

function inspectFields(fields: TObject, refuse: (predicate: string) => void): void {
  for (const name of Object.keys(fields.properties)) {
    if (reservedAccountFields.has(name))
      refuse(`fields declares "${name}", which has a meaning of its own in accounts`);
  }
  const { additionalProperties, patternProperties } = fields as {
    readonly additionalProperties?: unknown;
    readonly patternProperties?: unknown;
  };
  if ((additionalProperties ?? false) !== false || patternProperties !== undefined)
    refuse(
      'fields takes members that it does not name; an account has the fields that are named, and no others',
    );
}

function inspectActions(access: unknown, refuse: (predicate: string) => void): void {
  if (!isRecord(access) || access.create === undefined) return;
  refuse(
    `access.create cannot be declared: accounts are created by registration (COMITY_REGISTRATION), by administrators, and by accounts.admin; access takes ${[...accessActions].join(', ')}`,
  );
}

function inspectReadOnly(readOnly: unknown, refuse: (predicate: string) => void): void {
  if (!isRecord(readOnly)) return;
  for (const name of administratorsMembers) {
    if (Object.hasOwn(readOnly, name))
      refuse(`readOnly names "${name}", which administrators alone write; see accounts.admin`);
  }
}

type Members = Readonly<Record<string, unknown>>;

function inspectAdmin({ admin, grants }: Members, inspection: Inspection): void {
  if (Array.isArray(admin)) {
    for (const [at, each] of admin.entries()) inspectAdministration(each, `admin[${at}]`, inspection);
  } else if (admin !== undefined) inspectAdministration(admin, 'admin', inspection);
  if (grants !== undefined) inspectGrants(grants, admin, inspection.refuse);
}

function inspectSecondFactor(declared: unknown, refuse: (predicate: string) => void): void {
  const { required, ...others } = isRecord(declared) ? declared : { required: undefined };
  const isRole = (each: unknown) => typeof each === 'string' && each !== '';
  if (!(Array.isArray(required) && required.every(isRole)) || Object.keys(others).length > 0)
    refuse("secondFactor must be { required: [ROLE, ...] }, such as { required: ['administrator'] }");
}

function inspectGrants(grants: unknown, admin: unknown, refuse: (predicate: string) => void): void {
  if (!isRecord(grants)) {
    refuse(`grants must be { ROLE: [ROLE, ...] }, not ${kindOf(grants)}`);
    return;
  }
  const administering = new Set(listed(admin).map((each) => (isRecord(each) ? each.role : undefined)));
  const isRole = (each: unknown) => typeof each === 'string' && each !== '' && each !== administratorRole;
  for (const [role, given] of Object.entries(grants)) {
    if (!administering.has(role))
      refuse(
        `grants names "${role}", which administers no accounts; add { role: '${role}', where: RULE } to accounts.admin`,
      );
    if (!(Array.isArray(given) && given.every(isRole)))
      refuse(
        `grants.${role} must be a list of roles, such as ['technician'], without "${administratorRole}", which administrators alone give`,
      );
  }
}

/** The ways into an account that a declaration opens, closes or makes stronger. */
function inspectLogins(declared: Members, refuse: (predicate: string) => void): void {
  const { invitations, emailChange, passwordless = {}, secondFactor } = declared;
  if (secondFactor !== undefined) inspectSecondFactor(secondFactor, refuse);
  const isChoice = (each: unknown) => each === undefined || typeof each === 'boolean';
  for (const [name, choice] of Object.entries({ invitations, emailChange }))
    if (!isChoice(choice)) refuse(`${name} must be true or false, not ${kindOf(choice)}`);
  const { code, link, ...others } = isRecord(passwordless) ? passwordless : { code: null };
  if (!isChoice(code) || !isChoice(link) || Object.keys(others).length > 0)
    refuse('passwordless must be { code: true }, { link: true }, or both');
}

const administrationMembers = ['role', 'where'];

function inspectAdministration(admin: unknown, place: string, inspection: Inspection): void {
  if (!isRecord(admin)) {
    inspection.refuse(`${place} must be { role: 'NAME', where: RULE }, not ${kindOf(admin)}`);
    return;
  }
  for (const name of Object.keys(admin)) {
    if (!administrationMembers.includes(name))
      inspection.refuse(`${place} has no property "${name}"${suggestion(name, administrationMembers)}`);
  }
  const { role, where } = admin;
  inspectRule(inspection, { name: `${place}.role`, creates: false }, { role });
  if (where === undefined || where === 'public' || where === 'principal')
    inspection.refuse(
      `${place}.where must be a rule about the account, such as 'tenant' or what allow(...) returns: it decides which accounts the role administers`,
    );
  else inspectRule(inspection, { name: `${place}.where`, creates: false }, where);
}

/** Registrations could not create accounts. */
function warnOfRequired(
  declaration: AccountsDeclaration & { readonly fields: TObject },
  warn: (predicate: string) => void,
): void {
  if (declaration.hooks?.beforeWrite !== undefined) return;
  const { users } = resolveAccounts(declaration);
  const anybody = authenticated({ id: idPrefixes.account, scopes: ['read', 'write'] });
  for (const name of declaration.fields.required ?? []) {
    const schema: unknown = declaration.fields.properties[name];
    if (isRecord(schema) && Object.hasOwn(schema, 'default')) continue;
    if (permission(users.readOnly.get(name) ?? 'administrator', 'update', anybody) !== 'denied') continue;
    warn(
      `fields requires "${name}", which a registration cannot set, so none can create an account; make it optional, give it a default, or let hooks.beforeWrite set it`,
    );
  }
}

/** RFC 5321 §4.5.3.1.3. */
const emailCharactersMax = 254;
const nameCharactersMax = 200;
const scope = Type.Union(scopes.map((name) => Type.Literal(name)));
const roleName = Type.String({ minLength: 1, maxLength: 64 });

/** Values of members that an account was created without. */
export const accountDefaults: {
  readonly emailVerified: boolean;
  readonly roles: readonly string[];
  readonly scopes: readonly Scope[];
  readonly disabled: boolean;
} = { emailVerified: false, roles: [], scopes: ['read', 'write'], disabled: false };

const accountSchema = Type.Object({
  email: Type.String({ minLength: 3, maxLength: emailCharactersMax }),
  name: Type.Optional(Type.String({ minLength: 1, maxLength: nameCharactersMax })),
  emailVerified: Type.Optional(Type.Boolean({ default: accountDefaults.emailVerified })),
  roles: Type.Optional(
    Type.Array(roleName, { maxItems: 32, uniqueItems: true, default: accountDefaults.roles }),
  ),
  scopes: Type.Optional(Type.Array(scope, { uniqueItems: true, default: accountDefaults.scopes })),
  tenant: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
  disabled: Type.Optional(Type.Boolean({ default: accountDefaults.disabled })),
});

/** Members that administrators alone write; `accounts.admin` lets others write them within its bounds, except for `emailVerified`. */
const administratorsMembers = ['email', 'emailVerified', 'roles', 'scopes', 'tenant', 'disabled'] as const;

/** Names that a field of an application cannot have: members of an account, of a registration, and of the answer of /auth/me. */
const reservedAccountFields: ReadonlySet<string> = new Set([
  ...Object.keys(accountSchema.properties),
  ...[
    'password',
    'passkey',
    'challenge',
    'cookie',
    'token',
    'code',
    'fields',
    'kind',
    'authenticatedBy',
    'owner',
  ],
]);

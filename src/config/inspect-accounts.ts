/** Finds every mistake in `accounts` of a configuration (§5.7), each as one sentence that begins with the member that it is about. */
import type { TObject } from 'typebox';
import { permission } from '../model/access.ts';
import { authenticated } from '../model/principal.ts';
import { administratorsMembers, reservedAccountFields } from './account-members.ts';
import { type AccountsDeclaration, accountsCollection, resolveAccounts } from './accounts.ts';
import { fieldsOf } from './fields.ts';
import { inspectRule } from './inspect-access.ts';
import { inspectProperties, inspectRulesAndIndexes, inspectSchema, isSchema } from './inspect-collection.ts';
import { sizeMistakes } from './inspect-schema.ts';
import { type Inspection, isRecord, kindOf } from './inspection.ts';
import { suggestion } from './nearest.ts';

const knownProperties: ReadonlySet<string> = new Set<keyof AccountsDeclaration>([
  ...(['fields', 'access', 'readOnly', 'hidden', 'references', 'indexes'] as const),
  ...(['unique', 'search', 'hooks', 'admin'] as const),
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
  if (!isSchema({ schema: declared.fields })) {
    refuse('fields must be a Type.Object({ ... })');
    return undefined;
  }
  const declaration = declared as AccountsDeclaration;
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
  const collection = accountsCollection({}, undefined);
  const { access, admin, readOnly = {}, hidden, references, indexes, unique, search, hooks } = declared;
  const schema = accountsCollection({ fields: declaration.fields }, undefined).schema;
  const inspection = {
    ...shared,
    declaration: {
      ...{ schema, readOnly, hidden, references, indexes, unique, search, hooks },
      // Whether registrations can create accounts is judged below.
      access: isRecord(access ?? {}) ? { ...(access as object), create: 'administrator' } : access,
      tenantField: collection.tenantField,
    },
    fields: fieldsOf(schema),
  } as unknown as Inspection;
  inspectRulesAndIndexes(inspection);
  inspectActions(access, refuse);
  inspectReadOnly(readOnly, refuse);
  inspectAdmin(admin, inspection);
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

function inspectAdmin(admin: unknown, inspection: Inspection): void {
  if (admin === undefined) return;
  if (!isRecord(admin)) {
    inspection.refuse(`admin must be { role: 'NAME', where: RULE }, not ${kindOf(admin)}`);
    return;
  }
  for (const name of Object.keys(admin)) {
    if (name !== 'role' && name !== 'where')
      inspection.refuse(`admin has no property "${name}"${suggestion(name, ['role', 'where'])}`);
  }
  const { role, where } = admin;
  inspectRule(inspection, { name: 'admin.role', creates: false }, { role });
  if (where === undefined || where === 'public' || where === 'principal')
    inspection.refuse(
      "admin.where must be a rule about the account, such as 'tenant' or what allow(...) returns: it decides which accounts the role administers",
    );
  else inspectRule(inspection, { name: 'admin.where', creates: false }, where);
}

/** Registrations could not create accounts. */
function warnOfRequired(declaration: AccountsDeclaration, warn: (predicate: string) => void): void {
  if (declaration.hooks?.beforeWrite !== undefined) return;
  const { users } = resolveAccounts(declaration);
  const anybody = authenticated({ id: 'usr_', scopes: ['read', 'write'] });
  for (const name of declaration.fields.required ?? []) {
    const schema: unknown = declaration.fields.properties[name];
    if (isRecord(schema) && Object.hasOwn(schema, 'default')) continue;
    if (permission(users.readOnly.get(name) ?? 'administrator', 'update', anybody) !== 'denied') continue;
    warn(
      `fields requires "${name}", which a registration cannot set, so none can create an account; make it optional, give it a default, or let hooks.beforeWrite set it`,
    );
  }
}

/** The members of an account that Comity itself defines (§5.1). The fields of an application stand beside them (accounts.ts). */
import { Type } from 'typebox';
import { type Scope, scopes } from '../model/principal.ts';

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

export const accountSchema = Type.Object({
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
export const administratorsMembers = [
  'email',
  'emailVerified',
  'roles',
  'scopes',
  'tenant',
  'disabled',
] as const;

/** Names that a field of an application cannot have: members of an account, of a registration, and of the answer of /auth/me. */
export const reservedAccountFields: ReadonlySet<string> = new Set([
  ...Object.keys(accountSchema.properties),
  ...['password', 'cookie', 'token', 'code', 'fields', 'kind', 'authenticatedBy', 'owner'],
]);

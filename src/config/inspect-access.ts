/**
 * Checks the access rules of a declaration (§4.7.1): their shape, and that each can be decided where it stands. Functions are called for
 * callers of several kinds, twice each: what throws, answers something else or answers differently is refused before it can grant anything.
 */
import type { Rule } from '../model/access.ts';
import { callRule, type FunctionRule } from '../model/access-function.ts';
import type { Field } from '../model/field.ts';
import { anonymous, authenticated, type Principal, scopes } from '../model/principal.ts';
import { type Inspection, isRecord, kindOf, namedField } from './inspection.ts';
import { suggestion } from './nearest.ts';

const actions: readonly string[] = ['read', 'create', 'update', 'delete'];
const plainRules: ReadonlySet<unknown> = new Set<Rule>(['public', 'principal', 'owner', 'administrator']);
const kinds: ReadonlySet<string> = new Set(['role', 'scope', 'anyOf', 'allOf', 'where', 'allow']);
const nestedRulesMax = 8;
const roleCharactersMax = 64;

/** Callers that every function is tried with. */
const probes: readonly (readonly [name: string, principal: Principal])[] = [
  ['nobody', anonymous],
  ['somebody', authenticated({ id: 'somebody', scopes: ['read', 'write'] })],
  [
    'a member of a tenant',
    authenticated({ id: 'member', scopes: ['read', 'write'], roles: ['member'], tenant: 'tenant' }),
  ],
  ['an administrator', authenticated({ id: 'root', scopes: ['admin'], roles: ['administrator'] })],
];

export function inspectAccess(inspection: Inspection): void {
  const access: unknown = inspection.declaration.access;
  if (access === undefined) return;
  if (!isRecord(access)) {
    inspection.refuse(`access must be an object, not ${kindOf(access)}`);
    return;
  }
  for (const [action, rule] of Object.entries(access)) {
    if (!actions.includes(action)) {
      inspection.refuse(`access has no action "${action}"${suggestion(action, actions)}`);
    } else inspectRule(inspection, { name: `access.${action}`, creates: action === 'create' }, rule);
  }
}

/** Where a rule stands. */
export type Place = {
  readonly name: string;
  /** There is no resource yet: only functions may look at what is proposed. */
  readonly creates: boolean;
};

export function inspectRule(inspection: Inspection, place: Place, rule: unknown, depth = 0): void {
  if (rule === 'owner' && place.creates) {
    inspection.refuse(`${place.name} cannot be 'owner': nobody owns what is not there yet; use 'principal'`);
    return;
  }
  if (rule === 'tenant') {
    if (inspection.declaration.tenantField === undefined) {
      inspection.refuse(`${place.name} is 'tenant', which needs a tenantField to look at`);
    }
    return;
  }
  if (plainRules.has(rule)) return;
  if (depth > nestedRulesMax) {
    inspection.refuse(`${place.name} is nested more than ${nestedRulesMax} deep`);
    return;
  }
  const [[kind = '', content] = [], ...others] = isRecord(rule) ? Object.entries(rule) : [];
  if (others.length > 0 || !kinds.has(kind)) {
    inspection.refuse(
      `${place.name} must be 'public', 'principal', 'owner', 'tenant', 'administrator', what allow(...) returns, or one of { role }, { scope }, { anyOf }, { allOf } and { where }`,
    );
    return;
  }
  if (kind === 'where') inspectWhere(inspection, place, content);
  else if (kind === 'role') inspectRole(inspection, place, content);
  else if (kind === 'scope') inspectScope(inspection, place, content);
  else if (kind === 'allow') inspectFunction(inspection, place, content);
  else if (!Array.isArray(content) || content.length === 0) {
    inspection.refuse(`${place.name}: ${kind} must be a list of at least one rule`);
  } else for (const part of content) inspectRule(inspection, place, part, depth + 1);
}

function inspectRole(inspection: Inspection, place: Place, role: unknown): void {
  if (typeof role !== 'string' || role === '' || role.length > roleCharactersMax) {
    inspection.refuse(
      `${place.name}: role must be the name of a role, of 1 to ${roleCharactersMax} characters`,
    );
  }
}

function inspectScope(inspection: Inspection, place: Place, scope: unknown): void {
  const known: readonly unknown[] = scopes;
  if (known.includes(scope)) return;
  const meant = typeof scope === 'string' ? suggestion(scope, scopes) : '';
  inspection.refuse(`${place.name}: scope must be one of ${scopes.join(', ')}${meant}`);
}

function inspectFunction(inspection: Inspection, place: Place, judge: unknown): void {
  if (typeof judge !== 'function') {
    inspection.refuse(`${place.name}: allow takes a function, not ${kindOf(judge)}`);
    return;
  }
  if (inspection.fields.has('owner')) {
    inspection.refuse(
      `${place.name} is a function, to which "owner" is who created the resource; rename the field of that name`,
    );
    return;
  }
  const call = (principal: Principal) =>
    JSON.stringify(callRule(judge as FunctionRule['allow'], inspection.fields, principal));
  for (const [name, principal] of probes) {
    try {
      const [first, second] = [call(principal), call(principal)];
      if (first === second) continue;
      inspection.refuse(`${place.name}: the function answers differently each time it is called for ${name}`);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      inspection.refuse(`${place.name}: the function fails for ${name}: ${message}`);
    }
    return;
  }
}

function inspectWhere(inspection: Inspection, place: Place, where: unknown): void {
  if (place.creates) {
    inspection.refuse(
      `${place.name} cannot have a where rule: there is no resource to look at yet; a function may look at what is proposed`,
    );
    return;
  }
  if (!isRecord(where) || Object.keys(where).length === 0) {
    inspection.refuse(`${place.name}: where must name at least one field and its value`);
    return;
  }
  for (const [name, value] of Object.entries(where)) {
    const field = namedField(inspection, `${place.name}: where`, name);
    if (field === undefined) continue;
    if (field.path.length > 1 || field.type === 'array' || field.type === 'json') {
      inspection.refuse(
        `${place.name}: where can look only at single values at the top level, which "${name}" is not`,
      );
    } else if (!fits(field, value)) {
      inspection.refuse(`${place.name}: where compares "${name}", a ${field.type}, with ${kindOf(value)}`);
    }
  }
}

function fits(field: Field, value: unknown): boolean {
  if (value === null) return true;
  if (field.type === 'integer') return Number.isInteger(value);
  if (field.type === 'number') return Number.isFinite(value);
  return typeof value === (field.type === 'boolean' ? 'boolean' : 'string');
}

/**
 * Checks the access rules of a declaration (§4.7.1): their shape, and that each can be decided in its place. Access functions are called
 * twice for each of several kinds of callers: one that throws, returns something else or returns different results is refused before it can
 * grant anything.
 */

import type { Rule } from '../model/access.ts';
import { equals, ruleReferencesMax } from '../model/access-condition.ts';
import { type ConditionRule, callRule, type FunctionRule } from '../model/access-function.ts';
import type { Collection, CollectionDeclaration } from '../model/collection.ts';
import type { Field, Fields, Scalar } from '../model/field.ts';
import {
  allOf,
  distantField,
  endOfPath,
  isDistant,
  isRelated,
  type Reach,
  type Through,
} from '../model/filter.ts';
import { anonymous, authenticated, type Principal, scopes } from '../model/principal.ts';
import { instantWords, keptInstant } from '../model/timestamp.ts';
import { type Inspection, isRecord, kindOf, namedField, suggestion } from './inspection.ts';
import { namedParts } from './shape.ts';

const actions: readonly string[] = ['read', 'create', 'update', 'delete'];
const plainRules: ReadonlySet<unknown> = new Set<Rule>(['public', 'principal', 'owner', 'administrator']);
const kinds: ReadonlySet<string> = new Set(['role', 'scope', 'anyOf', 'allOf', 'where', 'allow']);
const nestedRulesMax = 8;
const roleCharactersMax = 64;

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
  for (const [action, rule] of namedParts(inspection.declaration.access, 'access', inspection.refuse)) {
    if (!actions.includes(action)) {
      inspection.refuse(`access has no action "${action}"${suggestion(action, actions)}`);
    } else inspectRule(inspection, { name: `access.${action}`, creates: action === 'create' }, rule);
  }
}

type Place = {
  readonly name: string;
  /** The rule governs creation, where no resource exists yet: only functions may look at the proposed one. */
  readonly creates: boolean;
  /** The rule is one for a single field, and may not look beyond references. */
  readonly ofField?: true;
};

export function inspectRule(inspection: Inspection, place: Place, rule: unknown, depth = 0): void {
  if (rule === 'owner' && place.creates) {
    inspection.refuse(
      `${place.name} cannot be 'owner': a resource that is being created has no owner yet; use 'principal'`,
    );
    return;
  }
  if (rule === 'tenant') {
    if (inspection.declaration.tenantField === undefined) {
      inspection.refuse(`${place.name} is 'tenant', which needs a tenantField`);
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
      `${place.name} is a function, to which "owner" means the creator of the resource; rename the field "owner"`,
    );
    return;
  }
  const call = (principal: Principal) =>
    callRule(judge as FunctionRule['allow'], inspection.fields, principal, inspection.through);
  for (const [name, principal] of probes) {
    try {
      const [first, second] = [call(principal), call(principal)];
      if (place.ofField && isRelated(first)) {
        inspection.refuse(`${place.name}: the function ${beyondReference}`);
        return;
      }
      if (JSON.stringify(first) === JSON.stringify(second)) continue;
      inspection.refuse(`${place.name}: the function returns different results for the same caller: ${name}`);
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
      `${place.name} cannot have a where rule, because no resource exists yet; use a function, which sees the proposed resource`,
    );
    return;
  }
  if (!isRecord(where) || Object.keys(where).length === 0) {
    inspection.refuse(`${place.name}: where must name at least one field and its value`);
    return;
  }
  const reach = { table: inspection.name, fields: inspection.fields, through: inspection.through };
  for (const [name, value] of Object.entries(where)) {
    const field = fieldOfRule(name, reach) ?? unknownInWhere(inspection, place, name, reach);
    if (field === undefined) continue;
    const steps = isDistant(field) ? field.steps.length : 0;
    if (steps > 0 && place.ofField) inspection.refuse(`${place.name}: where ${beyondReference}`);
    else if (steps > ruleReferencesMax) {
      inspection.refuse(
        `${place.name}: where names "${name}", which leads through ${steps} references; ${ruleReferencesMax} are allowed`,
      );
    } else if ((steps === 0 && field.path.length > 1) || field.type === 'array' || field.type === 'json') {
      const where = steps === 0 ? ' at the top level' : '';
      inspection.refuse(
        `${place.name}: where can compare only single values${where}, which "${name}" is not`,
      );
    } else if (field.type === 'timestamp' && typeof value === 'string' && keptInstant(value) === undefined) {
      inspection.refuse(
        `${place.name}: where compares "${name}" with "${value}", which is not ${instantWords}`,
      );
    } else if (!fits(field, value)) {
      inspection.refuse(`${place.name}: where compares "${name}", a ${field.type}, with ${kindOf(value)}`);
    }
  }
}

const beyondReference =
  'looks at a resource that a reference names; the rule of a single field can look only at the resource itself';

/** Reports a name without a field, in the collection where its path ends. */
function unknownInWhere(inspection: Inspection, place: Place, name: string, reach: Reach): undefined {
  const { at, rest } = endOfPath(name, reach);
  const within = at === reach ? '' : ` of ${at.table}`;
  const [first = ''] = rest.split('.', 1);
  if (rest !== first && at.fields.has(first) && at.fields.get(first)?.type === 'string') {
    inspection.refuse(
      `${place.name}: where names "${name}", but "${first}" is not a reference${within}; declare it in references`,
    );
    return undefined;
  }
  const meant = suggestion(rest, at.fields.keys());
  inspection.refuse(`${place.name}: where names "${name}", which is not a field${within}${meant}`);
  return undefined;
}

function fits(field: Field, value: unknown): boolean {
  if (value === null) return true;
  if (field.type === 'integer') return Number.isInteger(value);
  if (field.type === 'number') return Number.isFinite(value);
  return typeof value === (field.type === 'boolean' ? 'boolean' : 'string');
}

/** Cache directives that keep responses of one caller from the next. */
export const keptApart = /\b(?:private|no-store)\b/i;

/** The names in either form of "search", for checks of fields; inspect-members.ts reports other forms. */
function searchedNames(search: unknown): readonly unknown[] {
  const names = isRecord(search) ? search.fields : search;
  return Array.isArray(names) ? names : [];
}

/**
 * Checks the rules about writing and seeing single fields, and about tenants (§5.1). A hidden field must not be deducible in another way, so
 * `hidden` excludes some other declarations.
 */
export function inspectFieldRules(inspection: Inspection): void {
  inspectRules(inspection, 'readOnly');
  const hidden = inspectRules(inspection, 'hidden');
  for (const [name, rule] of hidden) inspectHidden(inspection, name, rule);
  inspectTenantField(inspection);
}

function inspectRules(
  inspection: Inspection,
  property: 'readOnly' | 'hidden',
): readonly (readonly [string, unknown])[] {
  const sound: (readonly [string, unknown])[] = [];
  const words = { must: 'must be an object of fields and rules' };
  for (const [name, rule] of namedParts(
    inspection.declaration[property],
    property,
    inspection.refuse,
    words,
  )) {
    const field = namedField(inspection, property, name);
    if (field === undefined || !isOwn(inspection, property, field)) continue;
    inspectRule(inspection, { name: `${property}.${name}`, creates: false, ofField: true }, rule);
    warnOfRequired(inspection, property, name);
    sound.push([name, rule]);
  }
  return sound;
}

function isOwn(inspection: Inspection, property: string, field: Field): boolean {
  if (field.column !== undefined) {
    inspection.refuse(`${property} names "${field.name}", which the server sets`);
  } else if (field.path.length > 1) {
    inspection.refuse(`${property} names "${field.name}"; only a field at the top level can have a rule`);
  }
  return field.column === undefined && field.path.length === 1;
}

function warnOfRequired(inspection: Inspection, property: 'readOnly' | 'hidden', name: string): void {
  const { schema, access } = inspection.declaration;
  if (access?.create === 'administrator' || !(schema.required ?? []).includes(name)) return;
  const declared: unknown = schema.properties[name];
  if (isRecord(declared) && Object.hasOwn(declared, 'default')) return;
  inspection.warn(
    `"${name}" is required and in ${property}: a principal that its rule excludes could not create any resource; give the field a default or make it optional`,
  );
}

function inspectHidden(inspection: Inspection, name: string, rule: unknown): void {
  const { search, unique, cacheControl } = inspection.declaration;
  if (searchedNames(search).includes(name)) {
    inspection.refuse(
      `search names "${name}", which some principals cannot see: a search would reveal its value to them`,
    );
  }
  if (uniqueNames(unique).includes(name) && looksAtResource(rule)) {
    inspection.refuse(
      `unique names "${name}", which some principals cannot see: a 409 would reveal to them which values exist`,
    );
  }
  if (typeof cacheControl === 'string' && !keptApart.test(cacheControl)) {
    inspection.refuse(
      `cacheControl lets shared caches store responses with "${name}", which some principals cannot see; use private or no-store`,
    );
  }
}

function uniqueNames(unique: unknown): readonly unknown[] {
  if (!Array.isArray(unique)) return [];
  return unique.flatMap((entry: unknown) =>
    isRecord(entry) && Array.isArray(entry.fields) ? entry.fields : entry,
  );
}

/** True if the rule permits a principal some resources and not others. */
function looksAtResource(rule: unknown): boolean {
  if (!isRecord(rule)) return rule === 'owner' || rule === 'tenant';
  const parts = rule.anyOf ?? rule.allOf;
  if (Array.isArray(parts)) return parts.some(looksAtResource);
  return 'where' in rule || 'allow' in rule;
}

function inspectTenantField(inspection: Inspection): void {
  const { tenantField } = inspection.declaration;
  if (tenantField === undefined) return;
  const field = namedField(inspection, 'tenantField', tenantField);
  if (field === undefined) return;
  if (field.type !== 'string' || field.path.length > 1 || field.column !== undefined) {
    inspection.refuse(
      `tenantField names "${field.name}"; the tenant of a resource is a string at the top level that clients could write`,
    );
  }
  const unpatchable: unknown = inspection.declaration.unpatchable;
  if (Array.isArray(unpatchable) && unpatchable.includes(tenantField)) {
    inspection.refuse(
      `unpatchable names "${field.name}", which is fixed as the tenantField anyway; leave it out`,
    );
  }
}

// Where the paths of access rules lead (§5.9): the fields of each declared collection, and the collections that its references name.
// Declarations need not be sound: those of mistakes lead nowhere.

/** @param fieldsIn undefined for a declaration without a sound schema */
export function reachesOf(
  declarations: Readonly<Record<string, CollectionDeclaration>>,
  fieldsIn: (declaration: CollectionDeclaration) => Fields | undefined,
): (collection: string) => Reach | undefined {
  const made = new Map<string, Reach | undefined>();
  const reachOf = (table: string): Reach | undefined => {
    if (made.has(table)) return made.get(table);
    const declaration = Object.hasOwn(declarations, table) ? declarations[table] : undefined;
    const fields = declaration === undefined ? undefined : fieldsIn(declaration);
    const reach =
      declaration === undefined || fields === undefined
        ? undefined
        : { table, fields, through: throughOf(declaration, fields, reachOf) };
    made.set(table, reach);
    return reach;
  };
  return reachOf;
}

function throughOf(
  { references }: CollectionDeclaration,
  fields: Fields,
  reachOf: (table: string) => Reach | undefined,
): Through | undefined {
  const declared: unknown = references;
  if (typeof declared !== 'object' || declared === null) return undefined;
  const known = declared as Readonly<Record<string, { readonly collection?: unknown } | null | undefined>>;
  return (name) => {
    const target = Object.hasOwn(known, name) ? known[name]?.collection : undefined;
    return typeof target === 'string' && fields.get(name)?.type === 'string' ? reachOf(target) : undefined;
  };
}

/** Where the references of a resolved collection lead. */
export function throughAmong(
  collections: ReadonlyMap<string, Collection>,
  { references, fields }: Collection,
): Through {
  return (name) => {
    const target = references.find(({ field }) => field === name)?.collection ?? '';
    const collection = fields.get(name)?.type === 'string' ? collections.get(target) : undefined;
    if (collection === undefined) return undefined;
    return { table: target, fields: collection.fields, through: throughAmong(collections, collection) };
  };
}

/** The field that `where` names, in the collection itself or beyond its references. */
function fieldOfRule(name: string, reach: Reach): Field | undefined {
  return reach.fields.get(name) ?? distantField(name, reach);
}

/** The rule with its conditions, if it names instants or fields beyond references; otherwise as it was. */
export function resolveWhere(rule: Extract<Rule, { where: unknown }>, reach: Reach): Rule {
  const where = Object.entries(rule.where as Readonly<Record<string, Scalar>>);
  const conditions = where.map(([name, value]) => {
    const field = fieldOfRule(name, reach);
    if (field === undefined) throw new Error(`a rule of ${reach.table} names an unknown field ${name}`);
    const { type } = isDistant(field) ? field.end : field;
    return { field, type, value: type === 'timestamp' ? (keptInstant(String(value)) ?? value) : value };
  });
  const mayRelate = conditions.some(({ field }) => isDistant(field));
  if (!mayRelate && !conditions.some(({ type }) => type === 'timestamp')) return rule;
  const filter = allOf(
    conditions.map(({ field, value }) =>
      isDistant(field) ? equals(field.end, field.steps, value) : equals(field, [], value),
    ),
  );
  return {
    filterFor: () => filter,
    source: JSON.stringify(rule.where),
    mayRelate,
    isWhere: true,
  } satisfies ConditionRule;
}

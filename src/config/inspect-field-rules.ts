/**
 * Checks what a declaration says about who may write and see single fields, and about tenants (§5.1). A field that is hidden from
 * someone must not tell of its value in another way, so some things do not go together with `hidden`.
 */
import type { Field } from '../model/field.ts';
import { inspectRule } from './inspect-access.ts';
import { type Inspection, isRecord, kindOf, namedField } from './inspection.ts';

/** Caching that keeps what one caller got from the next. */
const keptApart = /\b(?:private|no-store)\b/i;

export function inspectFieldRules(inspection: Inspection): void {
  inspectRules(inspection, 'readOnly');
  const hidden = inspectRules(inspection, 'hidden');
  for (const [name, rule] of hidden) inspectHidden(inspection, name, rule);
  inspectTenantField(inspection);
}

/** The rules of fields that can have one. */
function inspectRules(
  inspection: Inspection,
  property: 'readOnly' | 'hidden',
): readonly (readonly [string, unknown])[] {
  const rules: unknown = inspection.declaration[property];
  if (rules === undefined) return [];
  if (!isRecord(rules)) {
    inspection.refuse(`${property} must be an object of fields and rules, not ${kindOf(rules)}`);
    return [];
  }
  const sound: (readonly [string, unknown])[] = [];
  for (const [name, rule] of Object.entries(rules)) {
    const field = namedField(inspection, property, name);
    if (field === undefined || !isOwn(inspection, property, field)) continue;
    inspectRule(inspection, { name: `${property}.${name}`, creates: false }, rule);
    warnOfRequired(inspection, property, name);
    sound.push([name, rule]);
  }
  return sound;
}

function isOwn(inspection: Inspection, property: string, field: Field): boolean {
  if (field.column !== undefined) {
    inspection.refuse(`${property} names "${field.name}", which the server makes`);
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
    `"${name}" is required and in ${property}: whom its rule leaves out cannot create anything; give it a default or make it optional`,
  );
}

function inspectHidden(inspection: Inspection, name: string, rule: unknown): void {
  const { search, unique, cacheControl } = inspection.declaration;
  if (Array.isArray(search) && search.includes(name)) {
    inspection.refuse(
      `search names "${name}", which is hidden from some: a search would tell what stands in it`,
    );
  }
  if (Array.isArray(unique) && unique.includes(name) && looksAtResource(rule)) {
    inspection.refuse(
      `unique names "${name}", which is hidden by resource: whoever may write one would learn which values the others have`,
    );
  }
  if (typeof cacheControl === 'string' && !keptApart.test(cacheControl)) {
    inspection.refuse(
      `cacheControl lets shared caches keep what hides "${name}" from some; say private or no-store`,
    );
  }
}

/** Whether the rule permits a principal some resources and not others. */
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

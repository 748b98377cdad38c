/** Checks the access rules of a declaration (§4.7.1): their shape, and that each can be decided where it stands. */
import type { Field } from '../model/field.ts';
import { type Inspection, isRecord, kindOf, namedField } from './inspection.ts';
import { suggestion } from './nearest.ts';

const actions: readonly string[] = ['read', 'create', 'update', 'delete'];
const plainRules: ReadonlySet<unknown> = new Set(['public', 'principal', 'owner', 'administrator']);
const nestedRulesMax = 8;

export function inspectAccess(inspection: Inspection): void {
  const access: unknown = inspection.declaration.access;
  if (access === undefined) return;
  if (!isRecord(access)) {
    inspection.refuse(`access must be an object, not ${kindOf(access)}`);
    return;
  }
  for (const [action, rule] of Object.entries(access)) {
    if (actions.includes(action)) inspectRule(inspection, action, rule, 0);
    else inspection.refuse(`access has no action "${action}"${suggestion(action, actions)}`);
  }
}

function inspectRule(inspection: Inspection, action: string, rule: unknown, depth: number): void {
  const place = `access.${action}`;
  if (rule === 'owner' && action === 'create') {
    inspection.refuse(`${place} cannot be 'owner': nobody owns what is not there yet; use 'principal'`);
    return;
  }
  if (plainRules.has(rule)) return;
  if (depth > nestedRulesMax) {
    inspection.refuse(`${place} is nested more than ${nestedRulesMax} deep`);
    return;
  }
  const [[kind, content] = [], ...others] = isRecord(rule) ? Object.entries(rule) : [];
  if (others.length > 0 || (kind !== 'anyOf' && kind !== 'allOf' && kind !== 'where')) {
    inspection.refuse(
      `${place} must be 'public', 'principal', 'owner', 'administrator', or one of { anyOf }, { allOf } and { where }`,
    );
    return;
  }
  if (kind === 'where') {
    inspectWhere(inspection, action, content);
    return;
  }
  if (!Array.isArray(content) || content.length === 0) {
    inspection.refuse(`${place}: ${kind} must be a list of at least one rule`);
    return;
  }
  for (const part of content) inspectRule(inspection, action, part, depth + 1);
}

function inspectWhere(inspection: Inspection, action: string, where: unknown): void {
  const place = `access.${action}`;
  if (action === 'create') {
    inspection.refuse(`${place} cannot have a where rule: there is no resource to look at yet`);
    return;
  }
  if (!isRecord(where) || Object.keys(where).length === 0) {
    inspection.refuse(`${place}: where must name at least one field and its value`);
    return;
  }
  for (const [name, value] of Object.entries(where)) {
    const field = namedField(inspection, `${place}: where`, name);
    if (field === undefined) continue;
    if (field.path.length > 1 || field.type === 'array' || field.type === 'json') {
      inspection.refuse(
        `${place}: where can look only at single values at the top level, which "${name}" is not`,
      );
    } else if (!fits(field, value)) {
      inspection.refuse(`${place}: where compares "${name}", a ${field.type}, with ${kindOf(value)}`);
    }
  }
}

function fits(field: Field, value: unknown): boolean {
  if (value === null) return true;
  if (field.type === 'integer') return Number.isInteger(value);
  if (field.type === 'number') return Number.isFinite(value);
  return typeof value === (field.type === 'boolean' ? 'boolean' : 'string');
}

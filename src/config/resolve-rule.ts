/**
 * What the rules of a sound declaration become in a collection: `tenant` names its field, and a function comes with the conditions kept of
 * it. Everything else stays as it was written.
 */
import type { Access, Rule } from '../model/access.ts';
import { createConditionRule } from '../model/access-function.ts';
import type { Fields } from '../model/field.ts';

export type RuleSetting = { readonly fields: Fields; readonly tenantField: string | undefined };

export function resolveAccess(access: Access, setting: RuleSetting): Access {
  const { read, create, update, delete: remove } = access;
  return {
    read: resolveRule(read, setting),
    create: resolveRule(create, setting),
    update: resolveRule(update, setting),
    delete: resolveRule(remove, setting),
  };
}

/** Rules of single fields, by name. */
export function resolveFieldRules(
  rules: Readonly<Record<string, Rule>> | undefined,
  setting: RuleSetting,
): ReadonlyMap<string, Rule> {
  return new Map(Object.entries(rules ?? {}).map(([name, rule]) => [name, resolveRule(rule, setting)]));
}

function resolveRule(rule: Rule, setting: RuleSetting): Rule {
  if (rule === 'tenant') {
    if (setting.tenantField === undefined) throw new Error('the rule tenant without a tenantField');
    return { tenantIn: setting.tenantField };
  }
  if (typeof rule === 'string') return rule;
  if ('allow' in rule) return createConditionRule(rule, setting.fields);
  if ('anyOf' in rule) return { anyOf: rule.anyOf.map((part) => resolveRule(part, setting)) };
  if ('allOf' in rule) return { allOf: rule.allOf.map((part) => resolveRule(part, setting)) };
  return rule;
}

/** Whether a list that the rule governs holds the resources of one tenant alone. */
export function isWithinTenant(rule: Rule): boolean {
  if (typeof rule === 'string') return rule === 'tenant';
  return 'allOf' in rule ? rule.allOf.some(isWithinTenant) : 'tenantIn' in rule;
}

/**
 * Checks `tunnel` of a configuration; tunnel.ts has its meaning. A mistake here opens or closes the tunnel for everyone, so nothing is
 * guessed.
 */
import { hostRulesMembers, inspectHostList, inspectHostRules } from './host-rules.ts';
import { isRecord, kindOf } from './inspection.ts';
import { suggestion } from './nearest.ts';
import type { TunnelAccess, TunnelDeclaration, TunnelRule, TunnelRuleDeclaration } from './tunnel.ts';

const rulesMax = 1000;
const namedMax = 1000;
const nameCharactersMax = 600;
const keyIdPrefix = 'key_';

const members: ReadonlySet<string> = new Set<keyof TunnelDeclaration>(['everybody', 'rules', 'others']);
const ruleMembers: ReadonlySet<string> = new Set<keyof TunnelRuleDeclaration>([
  ...hostRulesMembers,
  'roles',
  'users',
  'keys',
]);

const open: TunnelAccess = { everybody: undefined, rules: [], others: undefined };

type Refuse = (predicate: string) => void;

/**
 * @param written the member `tunnel` of a configuration; undefined: every host for everybody
 * @param mistakes receives a sentence for each mistake; the result is then unusable
 */
export function inspectTunnel(written: unknown, mistakes: string[]): TunnelAccess {
  if (written === undefined) return open;
  if (!isRecord(written)) {
    mistakes.push(`tunnel must be an object, not ${kindOf(written)}`);
    return open;
  }
  for (const name of Object.keys(written)) {
    if (!members.has(name)) mistakes.push(`tunnel has no member "${name}"${suggestion(name, members)}`);
  }
  const { everybody, others, rules = [] } = written;
  return {
    everybody:
      everybody === undefined
        ? undefined
        : inspectHostList(everybody, 'tunnel.everybody', refusing(mistakes, 'tunnel.everybody')),
    rules: inspectRules(rules, mistakes),
    others:
      others === undefined
        ? undefined
        : inspectHostList(others, 'tunnel.others', refusing(mistakes, 'tunnel.others')),
  };
}

function inspectRules(written: unknown, mistakes: string[]): readonly TunnelRule[] {
  if (!Array.isArray(written)) {
    mistakes.push(`tunnel.rules must be a list, not ${kindOf(written)}`);
    return [];
  }
  if (written.length > rulesMax) mistakes.push(`tunnel.rules may hold ${rulesMax} at most`);
  return written.slice(0, rulesMax).flatMap((each: unknown, at) => {
    const place = `tunnel.rules[${at}]`;
    if (isRecord(each)) return [inspectRule(each, place, refusing(mistakes, place))];
    mistakes.push(`${place} must be an object, not ${kindOf(each)}`);
    return [];
  });
}

function inspectRule(written: Readonly<Record<string, unknown>>, place: string, refuse: Refuse): TunnelRule {
  for (const name of Object.keys(written)) {
    if (!ruleMembers.has(name)) refuse(` has no member "${name}"${suggestion(name, ruleMembers)}`);
  }
  const roles = inspectNames(written, 'roles', refuse);
  const users = inspectNames(written, 'users', refuse);
  const keys = inspectNames(written, 'keys', refuse);
  for (const key of keys) {
    if (!key.startsWith(keyIdPrefix))
      refuse(`.keys holds "${key}", which is not the id of a key (${keyIdPrefix}...)`);
  }
  for (const user of users) {
    // An e-mail address is not an id and would match no principal; ids of issuers may contain one after their bar.
    if (user.includes('@') && !user.includes('|')) {
      refuse(`.users holds "${user}", which is not the id of a principal (usr_...)`);
    }
  }
  if (roles.size + users.size + keys.size === 0) {
    refuse(' must name at least one role, user or key; rules for all other callers belong in tunnel.others');
  }
  return { roles, users, keys, hosts: inspectHostRules(written, place, refuse) };
}

function inspectNames(
  written: Readonly<Record<string, unknown>>,
  member: 'roles' | 'users' | 'keys',
  refuse: Refuse,
): ReadonlySet<string> {
  const value = written[member] ?? [];
  const isGood = (name: unknown): name is string =>
    typeof name === 'string' && name !== '' && name.length <= nameCharactersMax;
  if (Array.isArray(value) && value.length <= namedMax && value.every(isGood)) return new Set(value);
  refuse(`.${member} must be a list of ${namedMax} texts at most`);
  return new Set();
}

function refusing(mistakes: string[], place: string): Refuse {
  return (predicate) => mistakes.push(`${place}${predicate}`);
}

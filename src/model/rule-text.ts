/**
 * Access rules (§5.1) as text whose brackets show precedence: `(status is open AND owner is the caller) OR role is editor`. A rule becomes
 * a tree of clauses, each of which is a rule too. This file therefore judges nothing: `permission` and `permits`, which decide requests,
 * decide each clause alone, and so say which part of a rule permits or forbids.
 */
import type { Rule } from './access.ts';
import type { Field, Scalar } from './field.ts';
import { along, always, type Filter, type Step } from './filter.ts';
import { anonymous, type Principal } from './principal.ts';

/** What people call the members of a collection, by their names. */
export type Labels = Readonly<Record<string, string>>;

export type Clause = {
  /** Decides the clause alone. */
  readonly rule: Rule;
  /** The text of a clause without parts. */
  readonly say: (labels: Labels) => string;
  readonly join?: 'AND' | 'OR' | 'NOT';
  readonly parts: readonly Clause[];
  /** A function of the application returned it for the caller. */
  readonly isReturned?: boolean;
  /** The text of that function. */
  readonly source?: string;
};

const plainTexts = {
  public: 'anyone',
  principal: 'anyone with a credential',
  owner: 'owner is the caller',
  administrator: 'caller is an administrator',
  tenant: "tenant is the caller's",
} as const satisfies Readonly<Record<Extract<Rule, string>, string>>;

/** The rule in one line. A function stays a function: what it returns depends on the caller. */
export function ruleText(rule: Rule): string {
  return clauseText(clauseOf(rule));
}

export function clauseText(clause: Clause, labels: Labels = {}): string {
  const { join, parts } = clause;
  if (join === undefined) return clause.say(labels);
  const texts = parts.map((part) => {
    const text = clauseText(part, labels);
    return part.join === 'AND' || part.join === 'OR' ? `(${text})` : text;
  });
  return join === 'NOT' ? `NOT ${texts.join('')}` : texts.join(` ${join} `);
}

/**
 * @param caller the principal for which functions are called; absent: they are not
 * @throws any exception of a function, and AccessFunctionError for an invalid result
 */
export function clauseOf(rule: Rule, caller?: Principal): Clause {
  if (typeof rule === 'string') return leaf(rule, plainTexts[rule]);
  if ('role' in rule) return leaf(rule, `role is ${valueText(rule.role)}`);
  if ('scope' in rule) return leaf(rule, `scope is ${rule.scope}`);
  if ('tenantIn' in rule) {
    const { tenantIn } = rule;
    return { rule, say: (labels) => `${labels[tenantIn] ?? tenantIn} is the caller's tenant`, parts: [] };
  }
  if ('bearing' in rule) {
    const scope: Rule = { scope: rule.bearing };
    return joined('AND', rule, [clauseOf(scope), borne(clauseOf(rule.rule, caller), rule.bearing)]);
  }
  if ('where' in rule) {
    const where: readonly (readonly [string, Scalar])[] = Object.entries(rule.where);
    return joined(
      'AND',
      rule,
      where.map(([name, value]) => ({
        rule: { where: { [name]: value } },
        say: (labels) => `${labels[name] ?? name} ${value === null ? 'is absent' : `is ${valueText(value)}`}`,
        parts: [],
      })),
    );
  }
  if ('anyOf' in rule)
    return joined(
      'OR',
      rule,
      rule.anyOf.map((part) => clauseOf(part, caller)),
    );
  if ('allOf' in rule)
    return joined(
      'AND',
      rule,
      rule.allOf.map((part) => clauseOf(part, caller)),
    );
  if ('allow' in rule) return leaf(rule, functionText);
  if (rule.isWhere === true) return { ...filterClause(rule.filterFor(anonymous), [], undefined), rule };
  if (caller === undefined) return { ...leaf(rule, functionText), source: rule.source };
  return { ...filterClause(rule.filterFor(caller), [], caller), rule, isReturned: true, source: rule.source };
}

const functionText = 'a function permits it';

function leaf(rule: Rule, text: string): Clause {
  return { rule, say: () => text, parts: [] };
}

function joined(join: 'AND' | 'OR', rule: Rule, parts: readonly Clause[]): Clause {
  const [first] = parts;
  return first !== undefined && parts.length === 1 ? first : { rule, say: () => '', join, parts };
}

/** Rules that apply to credentials with another scope than `read` and `write` have parts that do. */
function borne(clause: Clause, bearing: Extract<Rule, { bearing: unknown }>['bearing']): Clause {
  return {
    ...clause,
    rule: { bearing, rule: clause.rule },
    parts: clause.parts.map((part) => borne(part, bearing)),
  };
}

/** The filter behind `steps`, as a clause on the resource where the path begins. A reference names at most one resource. */
function filterClause(filter: Filter, steps: readonly Step[], caller: Principal | undefined): Clause {
  const rule = conditionOn(along(steps, filter));
  const within = (part: Filter) => filterClause(part, steps, caller);
  switch (filter.op) {
    case 'and':
      return joined('AND', rule, filter.filters.map(within));
    case 'or':
      return joined('OR', rule, filter.filters.map(within));
    case 'not': {
      const negation: Clause = {
        ...leaf(conditionOn({ op: 'not', filter: along(steps, filter.filter) }), ''),
        join: 'NOT',
        parts: [within(filter.filter)],
      };
      return steps.length === 0 ? negation : joined('AND', rule, [within(always), negation]);
    }
    case 'related':
      return filterClause(filter.filter, [...steps, filter], caller);
    default:
      return { rule, say: (labels) => comparisonText(filter, steps, { labels, caller }), parts: [] };
  }
}

function conditionOn(filter: Filter): Rule {
  return { filterFor: () => filter, source: '' };
}

type Saying = { readonly labels: Labels; readonly caller: Principal | undefined };

type PlainFilter = Exclude<Filter, { op: 'and' | 'or' | 'not' | 'related' }>;

const comparisonWords = {
  eq: 'is',
  ne: 'is not',
  gt: 'is more than',
  gte: 'is at least',
  lt: 'is less than',
  lte: 'is at most',
  has: 'has',
} as const;

function comparisonText(filter: PlainFilter, steps: readonly Step[], { labels, caller }: Saying): string {
  if (filter.op === 'always') {
    const target = steps.at(-1)?.table;
    return target === undefined ? 'always' : `${pathText(steps, labels)} names one of ${target}`;
  }
  if (filter.op === 'never') return 'never';
  if (filter.op === 'search') return `q finds ${valueText(filter.terms.join(' '))}`;
  const path = pathText([...steps, filter], labels);
  if (filter.op === 'like') return `${path} matches ${valueText(filter.pattern)}`;
  if (filter.op === 'in')
    return `${path} is ${oneOf(filter.values.map((value) => valueText(value, caller)))}`;
  if (filter.value === null && filter.op === 'eq') return `${path} is absent`;
  if (filter.value === null && filter.op === 'ne') return `${path} is present`;
  return `${path} ${comparisonWords[filter.op]} ${valueText(filter.value, caller)}`;
}

function pathText(path: readonly { readonly field: Field }[], labels: Labels): string {
  const [first = '', ...rest] = path.map(({ field }) => (field.column === 'owner' ? 'owner' : field.name));
  return [labels[first] ?? first, ...rest].join('.');
}

const valuesShownMax = 10;

/** `open, assigned or waiting`, in lower case: `OR` joins clauses. */
function oneOf(texts: readonly string[]): string {
  const shown = texts.slice(0, valuesShownMax);
  const left = texts.length - shown.length;
  const last = left === 0 ? shown.pop() : `${left} other ${left === 1 ? 'value' : 'values'}`;
  return shown.length === 0 ? (last ?? '') : `${shown.join(', ')} or ${last ?? ''}`;
}

const valueCharactersMax = 80;
/** Texts that no reader takes for a word of the rule, a number or several words need no quotes. */
const plainText = /^[\p{L}_][\p{L}\p{N}_.:@|-]*$/u;
const ownWords: ReadonlySet<string> = new Set([
  'true',
  'false',
  'null',
  'absent',
  'present',
  'AND',
  'OR',
  'NOT',
]);

function valueText(value: Scalar, caller?: Principal): string {
  if (typeof value !== 'string') return String(value);
  if (caller?.kind === 'authenticated') {
    if (value === caller.id) return 'the caller';
    if (value === caller.tenant) return "the caller's tenant";
  }
  const text = value.length > valueCharactersMax ? `${value.slice(0, valueCharactersMax)}…` : value;
  return plainText.test(text) && !ownWords.has(text) ? text : JSON.stringify(text);
}

// Which parts of a rule decide.

/** @template T what decides a clause */
export type JudgedClause<T> = {
  /** `2` is the second alternative of the rule, `2.1` the first part of that. */
  readonly number: string;
  readonly clause: Clause;
  readonly answer: T;
  readonly parts: readonly JudgedClause<T>[];
};

/**
 * The alternatives of a rule, each decided alone with its parts. A rule without alternatives is the only one.
 * @param decide `permission` or `permits`, for a caller and a resource
 */
export function judgedAlternatives<T>(clause: Clause, decide: (rule: Rule) => T): readonly JudgedClause<T>[] {
  const alternatives = clause.join === 'OR' && clause.isReturned !== true ? clause.parts : [clause];
  const judge = (part: Clause, number: string): JudgedClause<T> => ({
    number,
    clause: part,
    answer: decide(part.rule),
    parts: part.parts.map((inner, index) => judge(inner, `${number}.${index + 1}`)),
  });
  return alternatives.map((part, index) => judge(part, String(index + 1)));
}

/**
 * Decisions on what a caller may do with a collection and with one of its documents (§4.21.9), and the part of the rule that makes each.
 * `permission` and `permits`, which decide requests, decide here too, and the functions of the configuration are called as for a request of
 * that caller. What hooks, preconditions and limits refuse is not part of it.
 */
import type { DeclaredAction } from '../../config/actions.ts';
import {
  type Action,
  type Permission,
  permission,
  permits,
  type Rule,
  type Subject,
} from '../../model/access.ts';
import type { Collection } from '../../model/collection.ts';
import { isAdministrator, type Principal } from '../../model/principal.ts';
import {
  type Clause,
  clauseOf,
  clauseText,
  type JudgedClause,
  judgedAlternatives,
} from '../../model/rule-text.ts';
import { madeMembers } from '../document/closed-members.ts';

export const answers = ['always', 'never', 'depends', 'yes', 'no'] as const;

export const reasons = [
  ...(['rule', 'unrestricted', 'administrator', 'scope'] as const),
  ...(['unreadable', 'document', 'server', 'fixed', 'failed'] as const),
] as const;

/** A longer function or message is cut. */
const sourceCharactersMax = 4096;

type Answer = (typeof answers)[number];

type Part = {
  readonly number: string;
  readonly text: string;
  readonly words: string;
  readonly isReturned: boolean;
  /** The text of the function that was asked; null: there is none. */
  readonly source: string | null;
  /** Null where the rule was not asked. */
  readonly answer: Answer | null;
  readonly parts: readonly Part[];
};

type Decision = {
  readonly answer: Answer;
  readonly reason: (typeof reasons)[number];
  readonly by: string | null;
  /** The message of the exception with which a function failed. */
  readonly failure: string | null;
  readonly text: string | null;
  readonly words: string | null;
  readonly rules: readonly Part[];
};

type MemberDecisions = { readonly name: string; readonly read: Decision; readonly write: Decision };

type OperationDecision = Decision & { readonly name: string; readonly requests: readonly string[] };

export type AccessReport = {
  readonly operations: readonly OperationDecision[];
  readonly members: readonly MemberDecisions[];
};

export type Judging = {
  readonly collection: Collection;
  /** Of the collection, from the base: `/orders`. */
  readonly path: string;
  readonly base: string;
  /** Those on the collection and on its members. */
  readonly actions: readonly DeclaredAction[];
  readonly caller: Principal;
  /** The document that the caller asks for. Absent: any. */
  readonly subject?: Subject | undefined;
};

export function accessReport(judging: Judging): AccessReport {
  const { collection, actions } = judging;
  const read = decided(judging, collection.access.read, 'read');
  const create = createDecision(judging);
  const [update, remove] = (['update', 'delete'] as const).map((action) =>
    within(decided(judging, collection.access[action], action), read, 'unreadable'),
  ) as [Decision, Decision];
  const standard = { read, create, update, replace: update, delete: remove };
  const named = Object.entries(standard) as [OperationName, Decision][];
  // Who creates a document sets its members too.
  const changed = judging.subject !== undefined || weights[update.answer] > weights[create.answer];
  return {
    operations: [
      ...named.map(([name, decision]) => ({ name, requests: requestsOf(judging, name), ...decision })),
      ...actions.map((action) => actionDecision(judging, action, read)),
    ],
    members: Object.keys(collection.schema.properties).map((name) =>
      memberDecisions(judging, name, { read, write: changed ? update : create }),
    ),
  };
}

/** Decisions on the actions that are on no collection. */
export function freeActionDecisions({
  actions,
  caller,
  base,
}: Pick<Judging, 'actions' | 'caller' | 'base'>): readonly OperationDecision[] {
  return actions.map(({ name, method, rule, pattern }) => {
    const kind = method === 'GET' || method === 'QUERY' ? 'read' : 'update';
    const own = decided({ caller, subject: undefined }, rule, kind);
    return { name, requests: [`${method} ${base}${pattern}`], ...own };
  });
}

/** The answers and reasons without the rules, and without members that the caller never sees. */
export function unexplained({ operations, members }: AccessReport): AccessReport {
  const bare = <T extends Decision>(decision: T): T => ({
    ...decision,
    ...{ by: null, failure: null, text: null, words: null, rules: [] },
  });
  return {
    operations: operations.map(bare),
    members: members
      .filter(({ read }) => weights[read.answer] > 0)
      .map(({ name, read, write }) => ({ name, read: bare(read), write: bare(write) })),
  };
}

type OperationName = Action | 'replace';

function requestsOf({ path, collection }: Judging, operation: OperationName): readonly string[] {
  const member = `${path}/{id}`;
  const created = [`POST ${path}`, ...(collection.putCreates ? [`PUT ${member}`] : [])];
  return {
    read: [`GET ${path}`, `QUERY ${path}`, `GET ${member}`],
    create: created,
    update: [`PATCH ${member}`, `PATCH ${path}`],
    replace: [`PUT ${member}`],
    delete: [`DELETE ${member}`, `POST ${path}/bulk-delete`],
  }[operation];
}

/** The document stands for a new one with its members, which the caller would own. */
function createDecision(judging: Judging): Decision {
  const { caller, subject, collection } = judging;
  const owner = caller.kind === 'authenticated' ? caller.id : null;
  const proposed = subject === undefined ? {} : { subject: { ...subject, owner } };
  return decided({ ...judging, ...proposed }, collection.access.create, 'create');
}

function actionDecision(judging: Judging, action: DeclaredAction, read: Decision): OperationDecision {
  const { name, method, on, rule, pattern } = action;
  const kind = method === 'GET' || method === 'QUERY' ? 'read' : 'update';
  const asked = on === 'member' ? judging : { ...judging, subject: undefined };
  const own = decided(asked, rule, kind);
  return {
    name,
    requests: [`${method} ${judging.base}${pattern}`],
    ...(on === 'member' ? within(own, read, 'unreadable') : own),
  };
}

const weights: Readonly<Record<Answer, number>> = { never: 0, no: 0, depends: 1, always: 2, yes: 2 };

/** A decision that another one limits, as reading does for what is done to a document. */
function within(own: Decision, other: Decision, reason: 'unreadable' | 'document'): Decision {
  if (weights[other.answer] >= weights[own.answer]) return own;
  return { ...own, answer: other.answer, reason: other.reason === 'failed' ? 'failed' : reason, by: null };
}

function memberDecisions(
  judging: Judging,
  name: string,
  document: { readonly read: Decision; readonly write: Decision },
): MemberDecisions {
  const { hidden, readOnly, computed, stamp, unpatchable } = judging.collection;
  const read = within(decided(judging, hidden.get(name), 'read'), document.read, 'document');
  const isMade = madeMembers.includes(name) || computed?.has(name) === true || stamp?.has(name) === true;
  const closed = isMade ? 'server' : unpatchable.has(name) ? 'fixed' : undefined;
  const own = decided(judging, readOnly.get(name), 'update');
  const never = judging.subject === undefined ? 'never' : 'no';
  if (closed !== undefined) return { name, read, write: { ...own, answer: never, reason: closed, by: null } };
  return { name, read, write: within(within(own, document.write, 'document'), read, 'unreadable') };
}

/** The part of a judgement that a rule needs. */
type Asking = Pick<Judging, 'caller' | 'subject'> & { readonly collection?: Collection };

/** @param rule undefined: there is none */
function decided(judging: Asking, rule: Rule | undefined, action: Action): Decision {
  const { caller, subject } = judging;
  const answerOf = (granted: Permission): Answer => answerText(granted, subject !== undefined);
  const decide = (part: Rule): Permission =>
    subject === undefined
      ? permission(part, action, caller)
      : permits(part, action, caller, subject)
        ? 'granted'
        : 'denied';
  // What is public is denied for want of a scope alone.
  const hasScope = permission('public', action, caller) === 'granted';
  const early = isAdministrator(caller) ? 'administrator' : hasScope ? undefined : 'scope';
  if (rule === undefined) {
    const answer = answerOf(hasScope ? 'granted' : 'denied');
    return {
      answer,
      reason: early ?? 'unrestricted',
      by: null,
      failure: null,
      text: null,
      words: null,
      rules: [],
    };
  }
  const clause = calledClause(rule, early === undefined ? caller : undefined);
  if ('failure' in clause) {
    const shown = shownRule(judging, clauseOf(rule), () => null);
    return { answer: answerOf('denied'), reason: 'failed', by: null, ...shown, failure: clause.failure };
  }
  const shown = shownRule(judging, clause, (part) => (early === undefined ? answerOf(decide(part)) : null));
  const granted = shown.rules.find(({ answer }) => answer === answerOf('granted'));
  return {
    answer: answerOf(decide(rule)),
    reason: early ?? 'rule',
    by: granted?.number ?? null,
    ...shown,
    failure: null,
  };
}

function shownRule(
  { collection }: Asking,
  clause: Clause,
  decide: (rule: Rule) => Answer | null,
): Pick<Decision, 'text' | 'words' | 'rules'> {
  const saying = (of: Clause) => ({
    text: clauseText(of),
    words: clauseText(of, collection?.presentation?.labels),
  });
  const show = ({ number, clause: of, answer, parts }: JudgedClause<Answer | null>): Part => ({
    ...{ number, ...saying(of), answer, isReturned: of.isReturned === true },
    source: of.source?.slice(0, sourceCharactersMax) ?? null,
    parts: parts.map(show),
  });
  return { ...saying(clause), rules: judgedAlternatives(clause, decide).map(show) };
}

function answerText(granted: Permission, isOfDocument: boolean): Answer {
  if (granted === 'depends') return 'depends';
  if (isOfDocument) return granted === 'granted' ? 'yes' : 'no';
  return granted === 'granted' ? 'always' : 'never';
}

/** The message of the function of the configuration that fails for the caller, as a request of the caller would (500). */
function calledClause(rule: Rule, caller: Principal | undefined): Clause | { readonly failure: string } {
  try {
    return clauseOf(rule, caller);
  } catch (error) {
    return {
      failure: (error instanceof Error ? error.message : String(error)).slice(0, sourceCharactersMax),
    };
  }
}

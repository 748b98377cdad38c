/** Access rules: what a caller may do with a collection or with one of its documents, and by which part of which rule, as the server decides it. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { AccessDecision, AccessReport, AccessRule } from '../api-types.ts';
import { FormField } from '../components/form-field.tsx';
import { ProblemNote } from '../components/problem.tsx';
import { base, description, isCollection, type Listed, listOf, pathOf } from '../description.ts';
import { inWords, labelOf, nameOf } from '../presentation.ts';
import { go, linkTo } from '../route.ts';
import { isObject, type Problem, problemOf, send } from '../send.ts';

const callers = [
  ['role', 'A role'],
  ['account', 'An account'],
  ['anonymous', 'Without a credential'],
] as const;

type CallerKind = (typeof callers)[number][0];

/** @param query of the address: the collection, the caller, and the document */
export function RulesPage({ query }: { readonly query: URLSearchParams }): JSX.Element {
  const collections = (description.value?.lists ?? []).filter(isCollection);
  const list = listOf(pathOf(query.get('collection') ?? '')) ?? collections[0];
  const kind = callers.find(([each]) => each === query.get('caller'))?.[0] ?? 'role';
  const [problem, report] = useReport(list, kind, query);
  const change = (changes: Readonly<Record<string, string>>) =>
    go(linkTo('rules', { ...Object.fromEntries(query), ...changes }));
  if (list === undefined) return <p class="empty">The configuration declares no collection.</p>;
  return (
    <section aria-labelledby="rules-title">
      <h1 id="rules-title">Access rules</h1>
      <p class="quiet">
        The server answers by the rules that decide requests. Hooks and preconditions may refuse more.
      </p>
      <form class="choices" onSubmit={(event) => event.preventDefault()}>
        <Choice
          label="Collection"
          value={list.name}
          options={collections.map((each) => [each.name, nameOf(each)])}
          onChange={(collection) => change({ collection, id: '' })}
        />
        <Choice
          label="Caller"
          value={kind}
          options={callers}
          onChange={(caller) => change({ caller, role: '', account: '' })}
        />
        {kind === 'role' ? (
          <Role value={query.get('role') ?? ''} roles={report?.roles ?? []} onChange={change} />
        ) : null}
        {kind === 'account' ? (
          <Found
            label="Account"
            of="users"
            text={query.get('account') ?? ''}
            onText={(account) => change({ account })}
          />
        ) : null}
        <Found
          key={list.name}
          label="Document (optional)"
          of={list.name}
          text={query.get('id') ?? ''}
          onText={(id) => change({ id })}
        />
      </form>
      {problem === undefined ? null : <ProblemNote problem={problem} />}
      {report === undefined ? null : <Report report={report} list={list} />}
    </section>
  );
}

/** Reads the report for what the address names; an account that is not chosen yet has none. */
function useReport(
  list: Listed | undefined,
  kind: CallerKind,
  query: URLSearchParams,
): readonly [Problem | undefined, AccessReport | undefined] {
  const [answer, setAnswer] = useState<readonly [Problem | undefined, AccessReport | undefined]>([
    undefined,
    undefined,
  ]);
  const account = query.get('account') ?? '';
  const isComplete = list !== undefined && (kind !== 'account' || account !== '');
  const asked = new URLSearchParams({
    collection: list?.name ?? '',
    ...(kind === 'role' ? { role: query.get('role') ?? '' } : {}),
    ...(kind === 'account' ? { account } : {}),
    ...((query.get('id') ?? '') === '' ? {} : { id: query.get('id') ?? '' }),
  }).toString();
  useEffect(() => {
    let isShown = true;
    if (!isComplete) setAnswer([undefined, undefined]);
    else
      void send('GET', `${base.value}/meta/access?${asked}`).then((reply) => {
        if (!isShown) return;
        const problem = problemOf(reply);
        const report = isObject(reply.json) ? (reply.json as unknown as AccessReport) : undefined;
        setAnswer(problem === undefined ? [undefined, report] : [problem, undefined]);
      });
    return () => {
      isShown = false;
    };
  }, [asked, isComplete]);
  return answer;
}

type ChoiceProps = {
  readonly label: string;
  readonly value: string;
  readonly options: readonly (readonly [value: string, text: string])[];
  readonly onChange: (value: string) => void;
};

function Choice({ label, value, options, onChange }: ChoiceProps): JSX.Element {
  return (
    <label>
      {label}
      <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {options.map(([each, text]) => (
          <option key={each} value={each}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

type RoleProps = {
  readonly value: string;
  readonly roles: readonly string[];
  readonly onChange: (changes: Readonly<Record<string, string>>) => void;
};

/** Rules name some roles; functions may ask for others. */
function Role({ value, roles, onChange }: RoleProps): JSX.Element {
  return (
    <label>
      Role
      <input
        list="rules-roles"
        value={value}
        maxLength={64}
        placeholder="None: any account"
        autocomplete="off"
        onChange={(event) => onChange({ role: event.currentTarget.value.trim() })}
      />
      <datalist id="rules-roles">
        {[...roles, 'administrator'].map((role) => (
          <option key={role} value={role} />
        ))}
      </datalist>
    </label>
  );
}

type FoundProps = {
  readonly label: string;
  /** Name of the collection that is searched. */
  readonly of: string;
  readonly text: string;
  readonly onText: (id: string) => void;
};

function Found({ label, of, text, onText }: FoundProps): JSX.Element {
  const schema = { type: 'string', 'x-references': of };
  return (
    <FormField label={label} schema={schema} isRequired={false} text={text} faults={[]} onText={onText} />
  );
}

const operationNames: Readonly<Record<string, string>> = {
  read: 'Read and list',
  create: 'Create',
  replace: 'Update and replace',
  delete: 'Delete',
};

/** Operations with their titles; an update and a replacement, which one rule decides, are one. */
function joinedOperations(operations: AccessReport['operations']): AccessReport['operations'] {
  const update = operations.find(({ name }) => name === 'update');
  return operations
    .filter(({ name }) => name !== 'update')
    .map((operation) => {
      const title = operationNames[operation.name] ?? inWords(operation.name);
      if (operation.name !== 'replace' || update === undefined) return { ...operation, name: title };
      return { ...operation, name: title, requests: [...update.requests, ...operation.requests] };
    });
}

function Report({ report, list }: { readonly report: AccessReport; readonly list: Listed }): JSX.Element {
  return (
    <>
      <h2>{report.id === null ? `${nameOf(list)} in general` : 'This document'}</h2>
      <ul class="decisions">
        {joinedOperations(report.operations).map((operation) => (
          <li key={operation.requests.join()}>
            <div>
              <h3>{operation.name}</h3>
              {operation.requests.map((request) => (
                <code key={request}>{request}</code>
              ))}
            </div>
            <Answer answer={operation.answer} />
            <Why decision={operation} to="operation" />
          </li>
        ))}
      </ul>
      <h2>Members</h2>
      <section class="scroll" tabIndex={0} aria-label="Table of members">
        <table class="decided">
          <thead>
            <tr>
              <th>Member</th>
              <th>Sees it</th>
              <th>Sets it</th>
            </tr>
          </thead>
          <tbody>
            {report.members.map(({ name, read, write }) => (
              <tr key={name}>
                <th scope="row">{labelOf(list.schema, name)}</th>
                {[read, write].map((decision, index) => (
                  <td key={index === 0 ? 'read' : 'write'}>
                    <Answer answer={decision.answer} />
                    <Why decision={decision} to={index === 0 ? 'see' : 'set'} />
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </>
  );
}

const answerTexts: Readonly<Record<AccessDecision['answer'], readonly [tone: string, text: string]>> = {
  always: ['good', 'Always'],
  yes: ['good', 'Yes'],
  depends: ['warn', 'By condition'],
  never: ['bad', 'Never'],
  no: ['bad', 'No'],
};

function Answer({ answer }: Pick<AccessDecision, 'answer'>): JSX.Element {
  const [tone, text] = answerTexts[answer];
  return (
    <p class="answer">
      <span class={`badge ${tone}`}>{text}</span>
    </p>
  );
}

/** What a decision is about: an operation on a document, or a member that a caller sees or sets. */
type Aim = 'operation' | 'see' | 'set';

type WhyProps = { readonly decision: AccessDecision; readonly to: Aim };

function Why({ decision, to }: WhyProps): JSX.Element {
  const { reason, rules, words, text } = decision;
  const sentence = sentenceOf(decision, to);
  const isRuled = reason !== 'server' && reason !== 'fixed';
  return (
    <div class="why">
      {sentence === '' ? null : <p class={reason === 'rule' ? undefined : 'quiet'}>{sentence}</p>}
      {isRuled && rules.length > 0 ? <Clauses clauses={rules} /> : null}
      {text === null || text === words || !isRuled ? null : <code>{text}</code>}
    </div>
  );
}

/** The reason in one sentence; empty where the only rule says it. */
function sentenceOf({ answer, reason, by, rules }: AccessDecision, to: Aim): string {
  const own = reasonTexts[reason];
  if (own !== undefined) return own;
  if (reason === 'unreadable' || reason === 'document') {
    const needed =
      reason === 'document'
        ? `${to === 'see' ? 'read' : 'change'} the document`
        : to === 'set'
          ? 'see the member'
          : 'read the document';
    return answer === 'depends' ? `Where it may ${needed}.` : `It may not ${needed}.`;
  }
  if (rules.length === 1) return '';
  if (by !== null) return `By rule ${by}.`;
  return answer === 'depends' ? 'Where one of these rules holds.' : 'None of these rules permits it.';
}

const reasonTexts: Readonly<Partial<Record<AccessDecision['reason'], string>>> = {
  unrestricted: 'No rule restricts it.',
  administrator: 'No rule applies to administrators.',
  scope: 'The credential lacks the scope for it.',
  server: 'The server sets it.',
  fixed: 'It is set at creation alone.',
  failed: 'A function of the rule fails for this caller: a request is answered 500.',
};

type Mark = { readonly tone: string; readonly path: string; readonly text: string };

/** Outlines of 16 by 16. */
const holds: Mark = { tone: 'good', path: 'M2 9l4 4 8-10', text: 'holds' };
const fails: Mark = { tone: 'bad', path: 'M3 3l10 10M13 3 3 13', text: 'does not hold' };
const depends: Mark = { tone: 'warn', path: 'M2 9c3-6 9 6 12 0', text: 'depends on the document' };
const unasked: Mark = { tone: 'quiet', path: 'M3 8h10', text: 'is not asked' };
const marks = { always: holds, yes: holds, depends, never: fails, no: fails } as const;

/** The alternatives of a rule, or the parts of one, by their numbers. */
function Clauses({ clauses }: { readonly clauses: readonly AccessRule[] }): JSX.Element {
  return (
    <ul class="clauses">
      {clauses.map(({ number, words, answer, isReturned, parts }) => {
        const { tone, path, text } = answer === null ? unasked : marks[answer];
        return (
          <li key={number}>
            <svg
              class={`mark ${tone}`}
              viewBox="0 0 16 16"
              width="12"
              height="12"
              role="img"
              aria-label={text}
            >
              <path d={path} fill="none" stroke="currentColor" stroke-width="2" />
            </svg>{' '}
            <span class="number">{number}</span> {words}
            {isReturned ? <span class="quiet"> (returned by a function)</span> : null}
            {parts.length > 0 ? <Clauses clauses={parts} /> : null}
          </li>
        );
      })}
    </ul>
  );
}

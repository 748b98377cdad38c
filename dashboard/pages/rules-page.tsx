/** Access rules: what a caller may do with a collection or with one of its documents, and by which part of which rule, as the server decides it. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { AccessDecision, AccessReport, AccessRule } from '../api-types.ts';
import { Choice } from '../components/choice.tsx';
import { FormField } from '../components/form-field.tsx';
import { Table } from '../components/plain-table.tsx';
import { ProblemNote } from '../components/problem.tsx';
import { base, description, isCollection, type Listed, listOf, pathOf } from '../description.ts';
import { inWords, labelOf, nameOf } from '../presentation.ts';
import { go, linkTo } from '../route.ts';
import { isObject, type Problem, problemOf, send } from '../send.ts';

const callers = [
  ['role', 'A role'],
  ['plain', 'An account without a role'],
  ['account', 'An account'],
  ['anonymous', 'Without a credential'],
] as const;

type CallerKind = (typeof callers)[number][0];

/** @param query of the address: the collection, the caller, and the document */
export function RulesPage({ query }: { readonly query: URLSearchParams }): JSX.Element {
  const collections = (description.value?.lists ?? []).filter(isCollection);
  const list = listOf(pathOf(query.get('collection') ?? '')) ?? collections[0];
  const roles = useRoles(list);
  // A report without a role and an account says `Never` everywhere.
  const role = query.get('role') || (roles?.[0] ?? '');
  const kind =
    callers.find(([each]) => each === query.get('caller'))?.[0] ?? (role === '' ? 'plain' : 'role');
  const [problem, report] = useReport(roles === undefined ? undefined : list, { kind, role }, query);
  const change = (changes: Readonly<Record<string, string>>) =>
    go(linkTo('rules', { ...Object.fromEntries(query), ...changes }));
  if (list === undefined) return <p class="empty">The configuration declares no collection.</p>;
  return (
    <section aria-labelledby="rules-title">
      <h1 id="rules-title">Access rules</h1>
      <p class="quiet">
        The server answers by the rules that decide requests. Hooks and preconditions may refuse more.
      </p>
      <form class="asking" onSubmit={(event) => event.preventDefault()}>
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
        {kind === 'role' ? <Role value={role} roles={roles ?? []} onChange={change} /> : null}
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

/** The roles that rules of the configuration name. @returns undefined until they are known */
function useRoles(list: Listed | undefined): readonly string[] | undefined {
  const [roles, setRoles] = useState<readonly string[] | undefined>(undefined);
  const collection = list?.name ?? '';
  useEffect(() => {
    const query = new URLSearchParams({ account: 'me', collection });
    void send('GET', `${base.value}/meta/access?${query}`).then(({ json }) =>
      setRoles(isObject(json) && Array.isArray(json.roles) ? json.roles : []),
    );
  }, []);
  return roles;
}

type Choosing = { readonly kind: CallerKind; readonly role: string };

/** Reads the report for what the address names; an account that is not chosen yet has none. */
function useReport(
  list: Listed | undefined,
  { kind, role }: Choosing,
  query: URLSearchParams,
): readonly [Problem | undefined, AccessReport | undefined] {
  const [answer, setAnswer] = useState<readonly [Problem | undefined, AccessReport | undefined]>([
    undefined,
    undefined,
  ]);
  const account = query.get('account') ?? '';
  const isComplete =
    list !== undefined && (kind !== 'account' || account !== '') && (kind !== 'role' || role !== '');
  const asked = new URLSearchParams({
    collection: list?.name ?? '',
    ...(kind === 'role' ? { role } : {}),
    ...(kind === 'plain' ? { role: '' } : {}),
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
      <p class="quiet">{callerText(report)}</p>
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
      <Table label="Table of members" headings={['Member', 'Sees it', 'Sets it']} class="decided">
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
      </Table>
    </>
  );
}

/** The caller as functions of rules get it. */
function callerText({ caller: { id, roles, scopes, tenant } }: AccessReport): string {
  if (id === null && scopes.length === 0) return 'Asked for a caller without a credential.';
  const who = id === null ? 'an account' : 'this account';
  const role =
    roles.length === 0 ? 'no role' : `the ${roles.length === 1 ? 'role' : 'roles'} ${inList(roles)}`;
  const of = tenant === null ? (id === null ? 'some tenant' : 'no tenant') : `the tenant ${tenant}`;
  return `Asked for ${who} with ${role}, the scopes ${inList(scopes)}, and ${of}.`;
}

function inList(texts: readonly string[]): string {
  return new Intl.ListFormat('en').format(texts);
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

/** The subject of a decision: an operation on a document, or a member that a caller sees or sets. */
type Aim = 'operation' | 'see' | 'set';

type WhyProps = { readonly decision: AccessDecision; readonly to: Aim };

function Why({ decision, to }: WhyProps): JSX.Element {
  const { reason, rules, words, text, failure } = decision;
  const sentence = sentenceOf(decision, to);
  const isRuled = reason !== 'server' && reason !== 'fixed';
  return (
    <div class="why">
      {sentence === '' ? null : <p class={reason === 'rule' ? undefined : 'quiet'}>{sentence}</p>}
      {isRuled && rules.length > 0 ? <Clauses clauses={rules} /> : null}
      {failure === null ? null : <p class="problem">{failure}</p>}
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

/** The name of a function, where it has one, and its text. */
function AskedFunction({ source, isAsked }: { readonly source: string; readonly isAsked: boolean }) {
  const [, name] = /^(?:async )?(?:function\s*)?([A-Za-z_$][\w$]*)\s*\(/.exec(source) ?? [];
  return (
    <details class="asked-function">
      <summary class="quiet">
        {isAsked ? 'returned by a function of the configuration' : 'a function of the configuration'}
        {name === undefined || name === 'function' ? '' : `, ${name}`}
      </summary>
      <pre tabIndex={0}>{source}</pre>
    </details>
  );
}

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
      {clauses.map(({ number, words, answer, isReturned, source, parts }) => {
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
            {source === null ? null : <AskedFunction source={source} isAsked={isReturned} />}
            {parts.length > 0 ? <Clauses clauses={parts} /> : null}
          </li>
        );
      })}
    </ul>
  );
}

/**
 * Requests beside the plain methods of a document or a list, as buttons: a button opens a form by the schema of the input at the side, and
 * the answer is shown there by its type. The application's actions are such requests, and so is the rotation of a secret.
 */
import type { JSX } from 'preact';
import { useId, useState } from 'preact/hooks';
import { resolve, type Schema, type Step } from '../description.ts';
import { inWords, labelOf } from '../presentation.ts';
import { go, linkTo, route } from '../route.ts';
import { isObject, type Problem, problemOf, type Reply, type SendOptions, send } from '../send.ts';
import { ActionOutput } from './action-output.tsx';
import { faultsAt, kindOf, withoutNulls } from './form-values.ts';
import { announceAction, type Concerned } from './notice.tsx';
import { SchemaForm } from './schema-form.tsx';
import { SecretOnce } from './secret-once.tsx';
import { SidePanel } from './side-panel.tsx';

type ActionsProps = {
  readonly steps: readonly Step[];
  /** The path of the document that the requests are on, in place of the one with its capture. */
  readonly member?: Concerned & { readonly path: string; readonly target: string };
  /** Called after each request that was carried out. */
  readonly onDone: () => Promise<void> | void;
};

export function Actions({ steps, member, onDone }: ActionsProps): JSX.Element | null {
  const { view, query } = route.value;
  const named = query.get('$action');
  const open = steps.find((step) => nameOfStep(step) === named);
  const show = (step?: Step) =>
    go(linkTo(view, { ...Object.fromEntries(query), $action: step && nameOfStep(step) }));
  if (steps.length === 0) return null;
  return (
    <>
      <fieldset class="actions buttons">
        <legend class="hidden">Actions</legend>
        {steps.map((step) => (
          <button
            type="button"
            key={`${step.method} ${step.path}`}
            title={step.description}
            onClick={() => show(step)}
          >
            {titleOf(step)}
          </button>
        ))}
      </fieldset>
      {open === undefined ? null : (
        <ActionPanel
          step={open}
          concerned={member}
          path={member === undefined ? open.path : open.path.replace(member.path, member.target)}
          onDone={onDone}
          onClose={() => show()}
        />
      )}
    </>
  );
}

export function titleOf({ summary, name }: Step): string {
  return summary === '' ? inWords(name) : summary;
}

/** Names a request in the address of the page that has it (`$action`), which opens its form. No member has a name with this sign. */
export function nameOfStep({ method, name }: Step): string {
  return `${method} ${name}`;
}

type Files = Readonly<Record<string, readonly File[]>>;

type PanelProps = {
  readonly step: Step;
  readonly concerned: Concerned | undefined;
  readonly path: string;
  readonly onDone: () => Promise<void> | void;
  readonly onClose: () => void;
};

function ActionPanel({ step, concerned, path, onDone, onClose }: PanelProps): JSX.Element {
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  const [reply, setReply] = useState<Reply | undefined>(undefined);
  const [files, setFiles] = useState<Files>({});
  const [isWaiting, setWaiting] = useState(false);
  const run = async (members: Record<string, unknown>) => {
    const given = await carryOut({ step, path, members: withoutNulls(members), files, isWaiting });
    setProblem(problemOf(given));
    setReply(given.status < 400 ? given : undefined);
    if (given.status >= 400) return;
    announceAction(titleOf(step), concerned, given.status === 202);
    await onDone();
  };
  return (
    <SidePanel title={titleOf(step)} isDone={reply !== undefined} onClose={onClose}>
      {step.description === undefined ? null : <p class="hint">{step.description}</p>}
      {reply === undefined ? (
        <SchemaForm
          schema={step.input}
          submit={titleOf(step)}
          problem={problem}
          onSubmit={run}
          onCancel={onClose}
        >
          <FileFields {...{ step, problem, files }} onFiles={setFiles} />
          {step.canWait ? (
            <label class="inline">
              <input
                type="checkbox"
                checked={isWaiting}
                onChange={(event) => setWaiting(event.currentTarget.checked)}
              />{' '}
              In the background
            </label>
          ) : null}
        </SchemaForm>
      ) : (
        <Answer {...{ step, reply, onClose }} onAgain={() => setReply(undefined)} />
      )}
    </SidePanel>
  );
}

type AnswerProps = {
  readonly step: Step;
  readonly reply: Reply;
  readonly onAgain: () => void;
  readonly onClose: () => void;
};

function Answer({ step, reply, onAgain, onClose }: AnswerProps): JSX.Element {
  const secret = isObject(reply.json) ? (reply.json.key ?? reply.json.secret) : undefined;
  if (typeof secret === 'string') return <SecretOnce secret={secret} made={reply.json} onDone={onClose} />;
  return (
    <>
      <ActionOutput step={step} reply={reply} />
      <div class="buttons">
        <button type="button" class="primary" onClick={onClose}>
          Close
        </button>
        <button type="button" onClick={onAgain}>
          Once more
        </button>
      </div>
    </>
  );
}

type Call = {
  readonly step: Step;
  readonly path: string;
  readonly members: Readonly<Record<string, unknown>>;
  readonly files: Files;
  readonly isWaiting: boolean;
};

/** Sends the members where the action takes them, and asks for the types that it declares. */
function carryOut({ step, path, members, files, isWaiting }: Call): Promise<Reply> {
  const { captures, sends, gives, method, leadsElsewhere } = step;
  const filled = captures.reduce(
    (found, name) => found.replace(`{${name}}`, encodeURIComponent(String(members[name] ?? ''))),
    path,
  );
  const rest = Object.entries(members).filter(([name]) => !captures.includes(name));
  const query =
    sends === 'query' ? new URLSearchParams(rest.flatMap(([name, value]) => pairsOf(name, value))) : '';
  const options: SendOptions = {
    headers: {
      Accept: [...gives, '*/*;q=0.1'].join(', '),
      ...(isWaiting ? { Prefer: 'respond-async' } : {}),
    },
    wantsOctets: true,
    staysHere: leadsElsewhere,
    ...(sends === 'json' && rest.length > 0 ? { json: Object.fromEntries(rest) } : {}),
    ...(sends === 'form' ? { form: formOf(rest, files) } : {}),
  };
  return send(method, String(query) === '' ? filled : `${filled}?${query}`, options);
}

/** A list repeats its name, and an object has the names of its members in brackets, as forms and query strings have them. */
function pairsOf(name: string, value: unknown): readonly [string, string][] {
  if (Array.isArray(value)) return value.flatMap((each) => pairsOf(name, each));
  if (isObject(value))
    return Object.entries(value).flatMap(([part, each]) => pairsOf(`${name}[${part}]`, each));
  return [[name, String(value)]];
}

function formOf(members: readonly (readonly [string, unknown])[], files: Files): FormData {
  const form = new FormData();
  for (const [name, text] of members.flatMap(([name, value]) => pairsOf(name, value)))
    form.append(name, text);
  for (const [name, chosen] of Object.entries(files)) for (const file of chosen) form.append(name, file);
  return form;
}

type FileFieldsProps = {
  readonly step: Step;
  readonly problem: Problem | undefined;
  readonly files: Files;
  readonly onFiles: (files: Files) => void;
};

function FileFields({ step, problem, files, onFiles }: FileFieldsProps): JSX.Element {
  const { input, accepted } = step;
  const names = Object.entries(input.properties ?? {}).filter(([, each]) =>
    ['file', 'files'].includes(kindOf(resolve(each))),
  );
  return (
    <>
      {names.map(([name, schema]) => (
        <FileField
          key={name}
          {...{ input, name, schema }}
          accept={accepted[name] ?? ''}
          faults={faultsAt(problem, name, '')}
          onFiles={(chosen) => onFiles({ ...files, [name]: chosen })}
        />
      ))}
    </>
  );
}

type FileFieldProps = {
  readonly input: Schema;
  readonly name: string;
  readonly schema: Schema;
  readonly accept: string;
  readonly faults: readonly string[];
  readonly onFiles: (files: readonly File[]) => void;
};

function FileField({ input, name, schema, accept, faults, onFiles }: FileFieldProps): JSX.Element {
  const id = useId();
  const isRequired = input.required?.includes(name) === true;
  return (
    <div class="field wide">
      <label for={id}>
        {labelOf(input, name)}
        {isRequired ? <span aria-hidden="true"> *</span> : null}
      </label>
      <input
        id={id}
        type="file"
        accept={accept}
        multiple={kindOf(resolve(schema)) === 'files'}
        aria-invalid={faults.length > 0}
        required={isRequired}
        aria-describedby={faults.length > 0 ? `${id}-fault` : undefined}
        onChange={(event) => onFiles([...(event.currentTarget.files ?? [])])}
      />
      {accept === '' ? null : <p class="hint">{accept.replaceAll(',', ', ')}</p>}
      {faults.length === 0 ? null : (
        <p class="fault" id={`${id}-fault`}>
          {faults.join('; ')}
        </p>
      )}
    </div>
  );
}

/** The form that creates or changes an endpoint: its address, the types of events, and what the API refuses, beside the field at fault. */
import type { ComponentChildren, JSX } from 'preact';
import { useLayoutEffect, useState } from 'preact/hooks';
import type { Endpoint, EventType } from '../api-types.ts';
import { ProblemNote } from '../components/problem.tsx';
import type { Problem } from '../send.ts';
import { type Page, useRead } from './api.ts';

/** The members that the form has. */
export type EndpointFields = {
  readonly url?: string;
  readonly description?: string | null;
  readonly events: readonly string[];
  readonly ratePerSecond?: number | null;
  readonly tenant?: string | null;
  readonly where?: unknown;
  readonly orderBy?: string | null;
  readonly template?: string | null;
  readonly omit?: readonly string[] | null;
};

type EndpointFormProps = {
  /** Undefined: a new one. */
  readonly endpoint?: Endpoint;
  /** The form has the field for the tenant. */
  readonly hasTenant: boolean;
  /** Only its description may be changed, and events taken away. */
  readonly isLimited?: boolean;
  readonly problem: Problem | undefined;
  readonly onSubmit: (fields: EndpointFields) => Promise<void>;
  readonly onCancel: () => void;
};

export function EndpointForm(props: EndpointFormProps): JSX.Element {
  const { endpoint, hasTenant, isLimited = false, problem, onSubmit, onCancel } = props;
  // What is typed stays when the endpoint is read again, after somebody else has changed it.
  const [initial] = useState(endpoint);
  const [events, setEvents] = useState<readonly string[]>(endpoint?.events ?? ['*']);
  const [isSending, setSending] = useState(false);
  useLayoutEffect(() => document.getElementById(isLimited ? 'description' : 'url')?.focus(), []);
  const submit = async (event: Event) => {
    event.preventDefault();
    const data = new FormData(event.currentTarget as HTMLFormElement);
    setSending(true);
    await onSubmit(fieldsOf(data, events, endpoint)).finally(() => setSending(false));
  };
  return (
    <form
      class="panel endpoint-form"
      onSubmit={submit}
      aria-label={endpoint ? 'Edit endpoint' : 'New endpoint'}
    >
      {isLimited ? null : (
        <Field name="url" label="Endpoint URL" problem={problem}>
          <input
            id="url"
            name="url"
            type="url"
            required
            placeholder="https://your-server.example/webhooks"
            defaultValue={initial?.url}
            aria-describedby="url-fault"
          />
        </Field>
      )}
      <Field name="description" label="Description" problem={problem}>
        <input id="description" name="description" defaultValue={initial?.description} maxLength={500} />
      </Field>
      <Events
        events={events}
        among={isLimited ? initial?.events : undefined}
        onChange={setEvents}
        problem={problem}
      />
      {isLimited ? null : <More initial={initial} hasTenant={hasTenant} problem={problem} />}
      <ProblemNote problem={problem} />
      <div class="buttons">
        <button type="submit" class="primary" disabled={isSending}>
          {endpoint === undefined ? 'Create endpoint' : 'Save'}
        </button>
        <button type="button" onClick={onCancel}>
          Cancel
        </button>
      </div>
    </form>
  );
}

type MoreProps = Pick<EndpointFormProps, 'hasTenant' | 'problem'> & {
  readonly initial: Endpoint | undefined;
};

function More({ initial, hasTenant, problem }: MoreProps): JSX.Element {
  return (
    <details>
      <summary>More</summary>
      <Field name="ratePerSecond" label="Attempts a second, at most" problem={problem}>
        <input
          id="ratePerSecond"
          name="ratePerSecond"
          type="number"
          min="0.01"
          step="any"
          defaultValue={initial?.ratePerSecond}
        />
      </Field>
      <Field name="where" label="Only events that pass this filter (JSON)" problem={problem}>
        <textarea
          id="where"
          name="where"
          rows={2}
          placeholder={'{"price": {"gte": 100}}'}
          defaultValue={initial?.where === undefined ? '' : JSON.stringify(initial.where)}
        />
      </Field>
      <Field name="orderBy" label="In order by the member at this pointer" problem={problem}>
        <input id="orderBy" name="orderBy" placeholder="/id" defaultValue={initial?.orderBy} />
      </Field>
      <Field name="template" label="Body: slack, discord, teams or JSON with placeholders" problem={problem}>
        <textarea
          id="template"
          name="template"
          rows={2}
          placeholder={'{"text": "{{type}}: {{data.object.name}}"}'}
          defaultValue={initial?.template}
        />
      </Field>
      <Field name="omit" label="Members left out, by commas" problem={problem}>
        <input id="omit" name="omit" placeholder="cost, note" defaultValue={initial?.omit?.join(', ')} />
      </Field>
      {hasTenant ? (
        <Field name="tenant" label="Tenant" problem={problem}>
          <input id="tenant" name="tenant" defaultValue={initial?.tenant} />
        </Field>
      ) : null}
    </details>
  );
}

/** Empty fields are absent in a new endpoint, and removed from an existing one. */
function fieldsOf(data: FormData, events: readonly string[], endpoint: Endpoint | undefined): EndpointFields {
  const none = endpoint === undefined ? undefined : null;
  const text = (name: string) => String(data.get(name) ?? '').trim();
  const rate = text('ratePerSecond');
  const fields: Record<string, unknown> = {
    ...(data.has('url') ? { url: text('url') } : {}),
    description: text('description') || none,
    events,
    ...(data.has('ratePerSecond') ? { ratePerSecond: rate === '' ? none : Number(rate) } : {}),
    ...(data.has('tenant') ? { tenant: text('tenant') || none } : {}),
    ...(data.has('where') ? shapeOf(text, endpoint) : {}),
  };
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined),
  ) as unknown as EndpointFields;
}

function shapeOf(
  text: (name: string) => string,
  endpoint: Endpoint | undefined,
): Readonly<Record<string, unknown>> {
  const none = endpoint === undefined ? undefined : null;
  const omit = text('omit')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
  return {
    where: text('where') === '' ? none : mergeInto(endpoint?.where, parsed(text('where'))),
    orderBy: text('orderBy') || none,
    template: text('template') || none,
    omit: omit.length === 0 ? none : omit,
  };
}

/** A text that is no JSON is sent as it is: the API says what it must be. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** The merge patch (RFC 7396) that makes the one value the other. */
function mergeInto(before: unknown, after: unknown): unknown {
  if (!isObject(before) || !isObject(after)) return after;
  const removed = Object.keys(before).filter((name) => !Object.hasOwn(after, name));
  return {
    ...Object.fromEntries(removed.map((name) => [name, null])),
    ...Object.fromEntries(
      Object.entries(after).map(([name, value]) => [name, mergeInto(before[name], value)]),
    ),
  };
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

type FieldProps = {
  readonly name: string;
  readonly label: string;
  readonly problem: Problem | undefined;
  readonly children: ComponentChildren;
};

function Field({ name, label, problem, children }: FieldProps): JSX.Element {
  return (
    <div class="field">
      <label for={name}>{label}</label>
      {children}
      <Faults name={name} problem={problem} />
    </div>
  );
}

function Faults({ name, problem }: Pick<FieldProps, 'name' | 'problem'>): JSX.Element {
  const faults = problem?.faults.filter(({ pointer }) => pointer.split('/')[1] === name) ?? [];
  return (
    <div id={`${name}-fault`}>
      {faults.map(({ message }) => (
        <p class="fault" key={message}>
          {message}
        </p>
      ))}
    </div>
  );
}

type EventsProps = {
  readonly events: readonly string[];
  /** Only these may be chosen. */
  readonly among: readonly string[] | undefined;
  readonly onChange: (events: readonly string[]) => void;
  readonly problem: Problem | undefined;
};

/** All types, or chosen ones; patterns such as `invoice.*` may be added. */
function Events({ events, among, onChange, problem }: EventsProps): JSX.Element {
  const types = useRead<Page<EventType>>('/event-types?limit=1000').value?.items ?? [];
  const isAll = events.includes('*');
  const toggle = (name: string) =>
    onChange(events.includes(name) ? events.filter((each) => each !== name) : [...events, name]);
  const others = events.filter((each) => each !== '*' && !types.some(({ type }) => type === each));
  const choice = among ?? [...types.map(({ type }) => type), ...others];
  const mayBeAll = among === undefined || among.includes('*');
  return (
    <fieldset class="field events">
      <legend>Events</legend>
      {mayBeAll ? (
        <label class="inline">
          <input type="checkbox" checked={isAll} onChange={() => onChange(isAll ? [] : ['*'])} /> All events
        </label>
      ) : null}
      {isAll ? null : (
        <>
          <div class="types">
            {choice
              .filter((name) => name !== '*')
              .map((name) => (
                <label class="inline" key={name}>
                  <input type="checkbox" checked={events.includes(name)} onChange={() => toggle(name)} />{' '}
                  <code>{name}</code>
                </label>
              ))}
          </div>
          {among === undefined ? (
            <NewPattern onAdd={(pattern) => onChange([...new Set([...events, pattern])])} />
          ) : null}
        </>
      )}
      <Faults name="events" problem={problem} />
    </fieldset>
  );
}

function NewPattern({ onAdd }: { readonly onAdd: (pattern: string) => void }): JSX.Element {
  const [pattern, setPattern] = useState('');
  const add = () => {
    if (pattern.trim() === '') return;
    onAdd(pattern.trim());
    setPattern('');
  };
  return (
    <span class="line">
      <input
        aria-label="Another type or pattern"
        placeholder="invoice.*"
        value={pattern}
        onInput={(event) => setPattern((event.currentTarget as HTMLInputElement).value)}
      />
      <button type="button" onClick={add}>
        Add
      </button>
    </span>
  );
}

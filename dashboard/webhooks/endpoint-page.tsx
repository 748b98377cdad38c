/** One endpoint: its state and performance, and what can be done with it: change, disable, test, rotate the secret, recover, delete. */
import type { ComponentChildren, JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { Delivery, Endpoint, EndpointHealth } from '../api-types.ts';
import { ConfirmButton } from '../components/confirm-button.tsx';
import { ProblemNote } from '../components/problem.tsx';
import { linkTo } from '../route.ts';
import { type Problem, problemOf } from '../send.ts';
import { type Read, useApi, useRead } from './api.ts';
import { EndpointBadge } from './badges.tsx';
import { Performance } from './charts.tsx';
import { Ago, Countdown } from './clock.tsx';
import { DeliveryList } from './delivery-list.tsx';
import { type EndpointFields, EndpointForm } from './endpoint-form.tsx';
import { eventsText } from './endpoints-page.tsx';
import { RecoverEndpoint } from './recovery.tsx';
import { RotateSecret, SecretOnce } from './secret.tsx';
import { TestEvent } from './test-event.tsx';

type EndpointPageProps = { readonly id: string; readonly hasTenant: boolean };

export function EndpointPage({ id, hasTenant }: EndpointPageProps): JSX.Element {
  const endpoint = useRead<Endpoint>(`/endpoints/${encodeURIComponent(id)}`);
  const health = useRead<EndpointHealth>(`/endpoints/${encodeURIComponent(id)}/health`, { everyMs: 10_000 });
  const [secret, setSecret] = useState<string | undefined>(undefined);
  const [sent, setSent] = useState(0);
  const { value } = endpoint;
  // A session that may not delete the endpoint may change little of it, and not its secret.
  const isLimited = !endpoint.allows('DELETE');
  const readAll = async () => {
    await Promise.all([endpoint.read(), health.read()]);
  };
  return (
    <section aria-labelledby="page-title">
      <p class="path">
        <a href={linkTo('endpoints')}>Endpoints</a>
      </p>
      <ProblemNote problem={endpoint.problem} />
      {value === undefined ? null : (
        <>
          <Head
            endpoint={value}
            tag={endpoint.tag}
            health={health.value}
            hasTenant={hasTenant}
            isLimited={isLimited}
            onChange={readAll}
          />
          {secret === undefined ? null : <SecretOnce secret={secret} onStored={() => setSecret(undefined)} />}
          <Performance id={id} />
          <div class="beside">
            <TestEvent id={id} onSent={() => setSent(sent + 1)} />
            {isLimited ? null : (
              <RotateSecret
                id={id}
                health={health.value}
                onRotated={(rotated) => {
                  setSecret(rotated);
                  void health.read();
                }}
              />
            )}
          </div>
          <RecoverEndpoint id={id} />
          <h2>Deliveries</h2>
          <DeliveryList key={sent} endpoint={value} query={new URLSearchParams()} />
        </>
      )}
    </section>
  );
}

type HeadProps = {
  readonly endpoint: Endpoint;
  readonly tag: string | null;
  readonly health: EndpointHealth | undefined;
  readonly hasTenant: boolean;
  readonly isLimited: boolean;
  readonly onChange: () => Promise<void>;
};

function Head({ endpoint, tag, health, hasTenant, isLimited, onChange }: HeadProps): JSX.Element {
  const { isEditing, setEditing, problem, change, remove } = useChanges(endpoint, tag, onChange);
  const isEnabled = endpoint.status === 'enabled';
  return (
    <>
      <header class="head">
        <h1 id="page-title">{endpoint.url}</h1>
        <EndpointBadge endpoint={endpoint} health={health} />
        <div class="buttons">
          <button type="button" onClick={() => setEditing(true)}>
            Edit
          </button>
          <button type="button" onClick={() => change({ status: isEnabled ? 'disabled' : 'enabled' })}>
            {isEnabled ? 'Disable' : 'Enable'}
          </button>
          {isLimited ? null : (
            <ConfirmButton action="Delete" question="Delete this endpoint?" onConfirm={remove} />
          )}
        </div>
      </header>
      {isEditing ? (
        <EndpointForm
          endpoint={endpoint}
          hasTenant={hasTenant}
          isLimited={isLimited}
          problem={problem}
          onSubmit={(fields: EndpointFields) => change(fields)}
          onCancel={() => setEditing(false)}
        />
      ) : (
        <ProblemNote problem={problem} />
      )}
      <Facts endpoint={endpoint} health={health} hasTenant={hasTenant} />
    </>
  );
}

/** Changes send `If-Match`: a change that somebody else made in between is reported, not overwritten. */
function useChanges(endpoint: Endpoint, tag: string | null, onChange: Read<Endpoint>['read']) {
  const api = useApi();
  const [isEditing, setEditing] = useState(false);
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  const target = `/endpoints/${endpoint.id}`;
  const headers = {
    'Content-Type': 'application/merge-patch+json',
    ...(tag === null ? {} : { 'If-Match': tag }),
  };
  const change = async (fields: object) => {
    const found = problemOf(await api.send('PATCH', target, { json: fields, headers }));
    setProblem(found?.status === 412 ? { ...found, message: overtaken } : found);
    if (found === undefined) setEditing(false);
    if (found === undefined || found.status === 412) await onChange();
  };
  const remove = async () => {
    const found = problemOf(await api.send('DELETE', target));
    if (found === undefined) location.hash = linkTo('endpoints');
    return found;
  };
  return { isEditing, setEditing, problem, change, remove };
}

const overtaken =
  'somebody else has changed this endpoint; its current state is shown, save again to apply yours';

type FactsProps = Pick<HeadProps, 'endpoint' | 'health' | 'hasTenant'>;

function Facts({ endpoint, health, hasTenant }: FactsProps): JSX.Element {
  return (
    <dl class="facts">
      {endpoint.description === undefined ? null : <Fact name="Description">{endpoint.description}</Fact>}
      <Fact name="Events">{eventsText(endpoint.events)}</Fact>
      <Fact name="Signature">{endpoint.scheme}</Fact>
      {hasTenant && endpoint.tenant !== undefined ? <Fact name="Tenant">{endpoint.tenant}</Fact> : null}
      {endpoint.ratePerSecond === undefined ? null : (
        <Fact name="Attempts a second">{String(endpoint.ratePerSecond)}</Fact>
      )}
      <Fact name="Created">
        <Ago time={endpoint.createdAt} />
      </Fact>
      {health?.failingSince == null ? null : (
        <Fact name="Failing since">
          <Ago time={health.failingSince} />
          {`, ${health.failures} ${health.failures === 1 ? 'attempt' : 'attempts'}`}
        </Fact>
      )}
      {health?.status === 'failing' ? <NextAttempt id={endpoint.id} /> : null}
      {health?.disablesAt == null ? null : (
        <Fact name="Disabled in, unless it succeeds">
          <Countdown until={health.disablesAt} over="a moment" />
        </Fact>
      )}
    </dl>
  );
}

/** A failing endpoint is left alone until its first delivery is due; the index of its queue has that one. */
function NextAttempt({ id }: { readonly id: string }): JSX.Element | null {
  const query = new URLSearchParams({
    ...{ endpointId: id, 'dueAt[gt]': '1970-01-01', sort: 'dueAt', limit: '1', fields: 'dueAt' },
  });
  const { value } = useRead<{ readonly items: readonly Pick<Delivery, 'dueAt'>[] }>(`/deliveries?${query}`, {
    everyMs: 10_000,
  });
  const until = value?.items[0]?.dueAt;
  if (until == null) return null;
  return (
    <Fact name="Paused, next attempt in">
      <Countdown until={until} over="a moment, it is due" />
    </Fact>
  );
}

type FactProps = { readonly name: string; readonly children: ComponentChildren };

export function Fact({ name, children }: FactProps): JSX.Element {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

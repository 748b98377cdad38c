/** States in a word and a colour: of an endpoint, of a delivery, of a response. */
import type { JSX } from 'preact';
import type { Delivery, Endpoint, EndpointHealth } from '../api-types.ts';

type Tone = 'good' | 'bad' | 'waiting' | 'off';

function Badge({ tone, children }: { readonly tone: Tone; readonly children: string }): JSX.Element {
  return <span class={`badge ${tone}`}>{children}</span>;
}

const reasons: Readonly<Record<string, string>> = {
  gone: 'It answered 410.',
  failing: 'It failed for too long.',
};

export function EndpointBadge({
  endpoint,
  health,
}: {
  readonly endpoint: Endpoint;
  readonly health: EndpointHealth | undefined;
}): JSX.Element {
  if (endpoint.status === 'disabled') {
    const reason = reasons[endpoint.disabledReason ?? ''];
    return (
      <>
        <Badge tone="off">Disabled</Badge>
        {reason === undefined ? null : <span class="hint">{` ${reason}`}</span>}
      </>
    );
  }
  if (health === undefined) return <Badge tone="waiting">Enabled</Badge>;
  return health.status === 'failing' ? <Badge tone="bad">Failing</Badge> : <Badge tone="good">Healthy</Badge>;
}

export function DeliveryBadge({ delivery }: { readonly delivery: Delivery }): JSX.Element {
  const { status, nextAttemptAt } = delivery;
  if (status === 'delivered') return <Badge tone="good">Delivered</Badge>;
  if (status === 'pending') return <Badge tone="waiting">Pending</Badge>;
  return nextAttemptAt === null ? <Badge tone="bad">Failed</Badge> : <Badge tone="waiting">Retrying</Badge>;
}

/** The result of the last attempt. */
export function Outcome({ delivery }: { readonly delivery: Delivery }): JSX.Element {
  const { lastStatusCode, lastError } = delivery;
  if (lastStatusCode !== null) return <span class="number">{lastStatusCode}</span>;
  return lastError === null ? <span class="absent">–</span> : <span>{errorText(lastError)}</span>;
}

const errors: Readonly<Record<string, string>> = {
  refused: 'address not allowed',
  dns: 'name not found',
  connect: 'no connection',
  tls: 'TLS failed',
  timeout: 'timed out',
  reset: 'connection reset',
  protocol: 'invalid response',
  expunged: 'event removed',
  access_lost: 'access lost',
  given_up: 'given up',
  body_too_large: 'body too large',
};

export function errorText(error: string): string {
  return errors[error] ?? error;
}

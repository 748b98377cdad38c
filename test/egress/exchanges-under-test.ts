/** Exchanges as a program has them, with small bounds, and calls for them. */
import { createDialer, type DialerOptions } from '../../src/egress/dial.ts';
import { type ExchangeCall, type ExchangeOutcome, exchanged } from '../../src/egress/exchange.ts';
import { createExchanges, type Exchanges, type ExchangesOptions } from '../../src/egress/exchanges.ts';
import { createEgressPolicy } from '../../src/egress/policy.ts';

export const settings: ExchangesOptions['settings'] = {
  egressConnectionsPerOriginMax: 8,
  egressConnectionsPerEndpointMin: 2,
  egressOriginsMax: 64,
  egressIdleMs: 10_000,
  egressHeadBytesMax: 4096,
  egressAnswerBytesMax: 8192,
  egressAnswerMs: 200,
  webhookSnippetCharactersMax: 64,
};

export type ExchangesUnderTest = Omit<Exchanges, 'exchange'> & {
  exchange(call: ExchangeCall): Promise<ExchangeOutcome>;
};

export function exchangesWith(
  options: Partial<Omit<ExchangesOptions, 'settings'>> & {
    readonly settings?: Partial<ExchangesOptions['settings']>;
    readonly dialer?: Partial<DialerOptions>;
  } = {},
): ExchangesUnderTest {
  const policy = createEgressPolicy({
    egressAllow: '127.0.0.0/8',
    egressPorts: '443',
    ownListeners: () => [],
  });
  const { dialer, settings: changed, ...others } = options;
  const exchanges = createExchanges({
    dial: createDialer({ policy, egressDnsMs: 2000, egressConnectMs: 2000, ...dialer }),
    ...others,
    settings: { ...settings, ...changed },
  });
  return { ...exchanges, exchange: (call) => exchanged(exchanges.exchange, call) };
}

export function callTo(url: URL | string, changes: Partial<ExchangeCall> = {}): ExchangeCall {
  return {
    url: new URL(url),
    method: 'POST',
    fields: ['content-type', 'application/json', 'webhook-id', 'evt_1'],
    body: '{"a":1}',
    timeoutMs: 5000,
    ...changes,
  };
}

/** The parts that tests compare; timing apart. */
export function kindOf(outcome: ExchangeOutcome): string {
  return outcome.kind === 'answered' ? `${outcome.status} ${outcome.cut ?? 'whole'}` : outcome.failure;
}

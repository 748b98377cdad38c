/**
 * Outgoing HTTP that is loaded with the first request: exchanges with receivers of webhooks, and fetch for published documents. Loading the
 * HTTP package takes 60 ms, a tenth of a start, and many programs never send anything.
 */
import type { Dial } from './dial.ts';
import type { Exchanges, ExchangesOptions } from './exchanges.ts';
import type { GuardedAgent } from './guarded-agent.ts';

export function createLateExchanges(options: ExchangesOptions): Exchanges {
  let made: Exchanges | undefined;
  let making: Promise<Exchanges> | undefined;
  let closed = false;

  async function make(): Promise<Exchanges> {
    const { createExchanges } = await import('./exchanges.ts');
    const exchanges = createExchanges(options);
    if (closed) await exchanges.close();
    made = exchanges;
    return exchanges;
  }

  return {
    exchange: (call, done) => {
      if (made !== undefined) return made.exchange(call, done);
      making ??= make();
      void making.then(({ exchange }) => exchange(call, done));
    },
    size: () => made?.size() ?? 0,
    async close() {
      closed = true;
      const exchanges = await making;
      await exchanges?.close();
    },
  };
}

// Fetch through the egress guard (§6.8), for published documents that a configuration names, such as the keys of a sender. Connections are
// kept only for a moment, because requests are rare. The caller limits the response.

export type GuardedFetch = {
  readonly fetch: (
    url: string,
    init: {
      readonly headers: Readonly<Record<string, string>>;
      readonly redirect: 'manual';
      readonly signal: AbortSignal;
    },
  ) => Promise<Response>;
  close(): Promise<void>;
};

export function createGuardedFetch(dial: Dial, headBytesMax: number): GuardedFetch {
  let loading: Promise<GuardedAgent> | undefined;
  return {
    async fetch(url, init) {
      loading ??= load(dial, headBytesMax);
      const { fetch, agent } = await loading;
      return (await fetch(url, { ...init, dispatcher: agent })) as unknown as Response;
    },
    async close() {
      await (await loading)?.agent.destroy();
    },
  };
}

async function load(dial: Dial, headBytesMax: number): Promise<GuardedAgent> {
  const { openGuardedAgent } = await import('./guarded-agent.ts');
  return openGuardedAgent(dial, headBytesMax);
}

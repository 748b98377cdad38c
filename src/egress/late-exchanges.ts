/**
 * Creates the exchanges with the first request: loading the HTTP package takes 60 ms, a tenth of a start, and many programs never send
 * anything.
 */
import type { Exchanges, ExchangesOptions } from './exchanges.ts';

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

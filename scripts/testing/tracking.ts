/**
 * node:test must know the test or suite that the running code belongs to: a test that is declared becomes a part of it. Node finds it by a hook
 * on every promise, timer and socket, which took a tenth of the processor time of tests of servers. An `AsyncLocalStorage` finds it too.
 */
import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks';
import { createRequire } from 'node:module';

type Hooks = Pick<typeof import('node:async_hooks'), 'createHook' | 'executionAsyncId'> & {
  AsyncResource: typeof AsyncResource;
};

/** To be called before node:test is loaded, which keeps what it finds in `node:async_hooks` then. */
export function replaceTracking(): void {
  const hooks: Hooks = createRequire(import.meta.url)('node:async_hooks');
  const original = { ...hooks };
  const asyncIds = new AsyncLocalStorage<number>();
  let tell: NonNullable<Parameters<Hooks['createHook']>[0]['init']> = () => undefined;

  /** Tests, suites and their hooks are resources. */
  class TrackedResource extends AsyncResource {
    constructor(...args: ConstructorParameters<typeof AsyncResource>) {
      super(...args);
      tell(this.asyncId(), args[0], this.triggerAsyncId(), this);
    }
    override runInAsyncScope<This, Result>(
      fn: (this: This, ...args: unknown[]) => Result,
      thisArg?: This,
      ...args: unknown[]
    ): Result {
      // The scope has the storage of where the resource was made.
      return super.runInAsyncScope(() =>
        asyncIds.run(this.asyncId(), () => Reflect.apply(fn, thisArg, args)),
      );
    }
  }

  hooks.AsyncResource = TrackedResource;
  hooks.executionAsyncId = () => asyncIds.getStore() ?? original.executionAsyncId();
  hooks.createHook = ({ init }) => {
    if (init !== undefined) tell = init;
    const inert = { enable: () => inert, disable: () => inert };
    return inert;
  };
}

/**
 * Gathers what is asked for in one turn of the event loop into few statements: a statement costs client and server many times what
 * one more id in it does. Who asks for the same shares the answer. Nothing is sent before the turn ends, so an answer shows
 * whatever was committed when it was asked for.
 */

/** Asks for the keys at once, none twice; answers those that are found. Absent keys are answered `undefined`. */
export type Ask<Key, Answer> = (keys: readonly Key[]) => Promise<ReadonlyMap<Key, Answer>>;

/** @param keysMax of one statement */
export function createGather<Key, Answer>(
  ask: Ask<Key, Answer>,
  keysMax: number,
): (key: Key) => Promise<Answer | undefined> {
  let gathered = new Map<Key, PromiseWithResolvers<Answer | undefined>>();

  function flush(): void {
    const asked = gathered;
    gathered = new Map();
    const keys = [...asked.keys()];
    for (let start = 0; start < keys.length; start += keysMax) {
      const some = keys.length <= keysMax ? keys : keys.slice(start, start + keysMax);
      ask(some).then(
        (answers) => {
          for (const key of some) asked.get(key)?.resolve(answers.get(key));
        },
        (error: unknown) => {
          for (const key of some) asked.get(key)?.reject(error);
        },
      );
    }
  }

  return (key) => {
    const shared = gathered.get(key);
    if (shared !== undefined) return shared.promise;
    if (gathered.size === 0) setImmediate(flush);
    const own = Promise.withResolvers<Answer | undefined>();
    gathered.set(key, own);
    return own.promise;
  };
}

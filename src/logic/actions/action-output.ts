/**
 * The return value of an action's handler as the content of the response. A value that does not fit its declaration is a
 * fault of the application: the response is a 500, and nothing is written.
 */
import type { TSchema } from 'typebox';
import { isOwnOutput } from '../../config/actions.ts';
import { CompiledSchema, type SchemaNode } from '../../config/declared-schema.ts';
import type { ContentSink, ContentStream, HeldMemory } from '../../http/message.ts';
import type { Made } from '../../kernel/resource.ts';
import type { Output, Pieces } from '../../model/logic/actions.ts';
import type { LoopTurns } from '../../observe/event-loop.ts';
import { callAs, type RunningFunction } from '../../observe/running-function.ts';
import { FunctionFailed } from '../function-failed.ts';

/** The parts of a response that the output determines. */
export type Given = Pick<Made, 'media' | 'stream' | 'location'> & {
  readonly content: string | Uint8Array | ContentStream | null;
};

/** @throws FunctionFailed @param stream what hears of a stream that has begun, and of its end @param by the handler, whose generator runs then */
export type ReadOutput = (value: unknown, stream: StreamCalls, by: RunningFunction) => Given;

type StreamCalls = { readonly onBegin: (memory: HeldMemory) => void; readonly onEnd: () => void };

const nothing: Given = { location: null, content: null };
const faultsShownMax = 3;

/** @param named the action, for sentences */
export function actionOutput(
  declared: TSchema | Output | undefined,
  named: string,
  turns: LoopTurns,
): ReadOutput {
  if (declared === undefined) return () => nothing;
  if (!isOwnOutput(declared)) return jsonOutput(declared, named);
  const media = { type: declared.mediaType };
  const wrong = (expected: string, value: unknown): FunctionFailed =>
    new FunctionFailed(`${named} must return ${expected}, and returned ${shown(value)}`);
  switch (declared.kind) {
    case 'text':
      return (value) => {
        if (typeof value !== 'string') throw wrong('a string', value);
        return { media, location: null, content: value };
      };
    case 'bytes':
      return (value) => {
        if (!(value instanceof Uint8Array)) throw wrong('a Uint8Array', value);
        return { media, location: null, content: value };
      };
    case 'stream':
      return (value, calls, by) => {
        if (!isPieces(value)) throw wrong('an iterable of strings or Uint8Arrays', value);
        const stream = contentStream(value, { by, turns, ...calls });
        return { media, stream, location: null, content: stream };
      };
    case 'redirect':
      return (value) => {
        if (typeof value !== 'string' || !isLocation(value))
          throw wrong('a URI reference of ASCII characters', value);
        return { ...nothing, location: value };
      };
  }
}

function jsonOutput(schema: TSchema, named: string): ReadOutput {
  const root = schema as object as SchemaNode;
  let compiled: CompiledSchema | undefined;
  return (value) => {
    compiled ??= new CompiledSchema(root);
    const doc: string | undefined = JSON.stringify(value);
    // Dates, and members without a value, are others in JSON, which is what the schema describes.
    const told: unknown = doc === undefined ? undefined : JSON.parse(doc);
    const faults =
      doc === undefined || compiled.check(told) ? [] : compiled.faultsOf(root, told, faultsShownMax);
    compiled.forget();
    if (doc === undefined || faults.length > 0) {
      const what = faults.map(({ pointer, message }) => `${pointer} ${message}`.trim()).join('; ');
      throw new FunctionFailed(
        `${named} returned what its output does not describe: ${what || shown(value)}`,
      );
    }
    return { location: null, content: doc };
  };
}

const printable = /^[\x21-\x7e]+$/;

function isLocation(text: string): boolean {
  return printable.test(text) && URL.canParse(text, 'http://localhost/');
}

function isPieces(value: unknown): value is Pieces {
  return (
    typeof value === 'object' && value !== null && (Symbol.asyncIterator in value || Symbol.iterator in value)
  );
}

function shown(value: unknown): string {
  if (value === undefined || value === null) return String(value);
  return Array.isArray(value) ? 'a list' : `a ${typeof value}`;
}

/** Longer pieces are sent in parts, so that a slow client does not make the program hold a whole one. */
const partBytesMax = 16 * 1024;

/**
 * Reads the next piece when the client has received most of the last one. The generator ends with the response: if the client leaves before,
 * `return` has it run its `finally`.
 */
function contentStream(
  pieces: Pieces,
  { by, turns, onBegin, onEnd }: Omit<Sending, 'ready' | 'isOver'> & StreamCalls,
): ContentStream {
  return {
    open(sink) {
      onBegin(sink.memory);
      const iterator =
        Symbol.asyncIterator in pieces ? pieces[Symbol.asyncIterator]() : pieces[Symbol.iterator]();
      let hasLeft = false;
      let wake = (): void => undefined;
      sink.onReady(() => wake());
      const ready = (): Promise<void> => {
        const { promise, resolve } = Promise.withResolvers<void>();
        wake = resolve;
        return promise;
      };
      void send(sink, iterator, { by, turns, ready, isOver: () => hasLeft }).finally(onEnd);
      return () => {
        hasLeft = true;
        wake();
        onEnd();
        // At once: an iterator that waits for what may never come is to stop waiting.
        void end(iterator, by);
      };
    },
  };
}

type Sending = {
  readonly by: RunningFunction;
  readonly turns: LoopTurns;
  readonly ready: () => Promise<void>;
  readonly isOver: () => boolean;
};

type Iterators = AsyncIterator<string | Uint8Array> | Iterator<string | Uint8Array>;

async function send(
  sink: ContentSink,
  iterator: Iterators,
  { by, turns, ready, isOver }: Sending,
): Promise<void> {
  const { named } = by;
  const take = () => callAs(by, () => iterator.next());
  try {
    for (let next = await take(); next.done !== true; next = await take()) {
      const { value } = next;
      if (typeof value !== 'string' && !(value instanceof Uint8Array))
        throw new FunctionFailed(`${named} must yield strings or Uint8Arrays, and yielded ${shown(value)}`);
      const bytes = typeof value === 'string' ? Buffer.from(value) : value;
      for (let at = 0; at < bytes.length && !isOver(); at += partBytesMax) {
        const isTaken = sink.write(bytes.subarray(at, at + partBytesMax));
        if (!isTaken && !isOver()) await ready();
      }
      await turns.next();
      if (isOver()) return;
    }
    sink.end();
  } catch (error) {
    // A client that has left is the usual cause then.
    if (isOver()) return;
    sink.fail(new FunctionFailed(`the stream of ${named} failed`, { cause: error }));
    await end(iterator, by);
  }
}

/** Ignores what the iterator throws, because the response has ended. */
async function end(iterator: Iterators, by: RunningFunction): Promise<void> {
  try {
    await callAs(by, () => iterator.return?.());
  } catch {
    // See above.
  }
}

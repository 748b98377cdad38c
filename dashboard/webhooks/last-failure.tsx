/** Why the last attempt failed, in words and with its place: of a delivery its answer, of a handler the line of the function that threw. */
import type { JSX } from 'preact';
import { Time } from '../components/value.tsx';

type LastFailureProps = {
  /** The number of the attempt, from 1 on. */
  readonly number: number;
  readonly at: string;
  /** The status of the answer, or the kind of the failure. */
  readonly what: string;
  readonly message: string | null;
  /** The first octets of the answer. */
  readonly snippet?: string;
};

export function LastFailure({ number, at, what, message, snippet = '' }: LastFailureProps): JSX.Element {
  return (
    <section class="failure" aria-label="Why it failed">
      <p>
        <strong>{what}</strong>{' '}
        <span class="quiet">
          attempt {number}, <Time value={at} />
        </span>
      </p>
      {message === null ? null : <FailureText message={message} />}
      {snippet === '' ? null : <pre tabIndex={0}>{snippet}</pre>}
    </section>
  );
}

/** `(repairs.config.ts:12:15)` at the end of a message is the place of the function. */
const placeAtEnd = /^(.*?) \(([^()\s]+:\d+(?::\d+)?)\)$/s;

export function FailureText({ message }: { readonly message: string }): JSX.Element {
  const [, text = message, place] = placeAtEnd.exec(message) ?? [];
  return (
    <p class="fault">
      {text}
      {place === undefined ? null : (
        <>
          {' '}
          at <code>{place}</code>
        </>
      )}
    </p>
  );
}

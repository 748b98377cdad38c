/** The attempts of a delivery or of a received message as a timeline, oldest first: outcome, time, error and the response's beginning. */
import type { JSX } from 'preact';
import { isObject } from '../send.ts';
import { FailureText } from '../webhooks/last-failure.tsx';
import { Time } from './value.tsx';

type Attempt = Readonly<Record<string, unknown>>;

/** True for items that are attempts: they have a time and how they came about. */
export function areAttempts(items: readonly unknown[]): items is readonly Attempt[] {
  return items.length > 0 && items.every((each) => isObject(each) && typeof each.at === 'string');
}

export function Attempts({ items }: { readonly items: readonly Attempt[] }): JSX.Element {
  return (
    <ol class="timeline">
      {items.map((attempt) => (
        <li key={String(attempt.at)} class={isSuccess(attempt) ? 'good' : 'bad'}>
          <Time value={String(attempt.at)} /> <strong>{outcomeOf(attempt)}</strong>{' '}
          <span class="quiet">
            {[textOf(attempt.trigger), typeof attempt.latencyMs === 'number' ? `${attempt.latencyMs} ms` : '']
              .filter(Boolean)
              .join(', ')}
          </span>
          <Failure attempt={attempt} />
          {textOf(attempt.responseSnippet) === '' ? null : <pre>{textOf(attempt.responseSnippet)}</pre>}
        </li>
      ))}
    </ol>
  );
}

/** In words with its place where the function is known, or else its kind. */
function Failure({ attempt }: { readonly attempt: Attempt }): JSX.Element | null {
  const [message, kind] = [textOf(attempt.message), textOf(attempt.error)];
  if (message !== '') return <FailureText message={message} />;
  return kind === '' ? null : <p class="fault">{kind}</p>;
}

function isSuccess({ statusCode, outcome, error }: Attempt): boolean {
  if (typeof statusCode === 'number') return statusCode >= 200 && statusCode < 300;
  return typeof outcome === 'string' ? outcome === 'processed' : error === null || error === undefined;
}

function outcomeOf({ statusCode, outcome }: Attempt): string {
  return typeof statusCode === 'number' ? String(statusCode) : textOf(outcome) || 'no response';
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  return isObject(value) && typeof value.message === 'string' ? value.message : '';
}

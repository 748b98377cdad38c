/** The signing secret of an endpoint: shown once, rotated, and the clock of the overlap in which the earlier one still signs. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { EndpointHealth } from '../api-types.ts';
import { ProblemNote } from '../components/problem.tsx';
import { isObject, type Problem, problemOf } from '../send.ts';
import { useApi } from './api.ts';
import { Countdown } from './clock.tsx';
import { CopyText } from './copy-text.tsx';

type SecretOnceProps = { readonly secret: string; readonly onStored: () => void };

export function SecretOnce({ secret, onStored }: SecretOnceProps): JSX.Element {
  return (
    <section class="panel once" role="status" aria-label="Signing secret">
      <h2>Signing secret</h2>
      <p>Store it where your receiver verifies signatures. It is shown only now.</p>
      <CopyText text={secret} label="Signing secret" />
      <p>
        <button type="button" class="primary" onClick={onStored}>
          I have stored it
        </button>
      </p>
    </section>
  );
}

const overlaps = [
  [0, 'at once'],
  [3600, 'after an hour'],
  [86_400, 'after a day'],
] as const;

type RotateSecretProps = {
  readonly id: string;
  readonly health: EndpointHealth | undefined;
  readonly onRotated: (secret: string) => void;
};

export function RotateSecret({ id, health, onRotated }: RotateSecretProps): JSX.Element {
  const api = useApi();
  const [overlap, setOverlap] = useState(3600);
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  const rotate = async (event: Event) => {
    event.preventDefault();
    const reply = await api.send('POST', `/endpoints/${id}/rotate-secret`, {
      json: { overlapSeconds: overlap },
    });
    setProblem(problemOf(reply));
    const secret = isObject(reply.json) ? reply.json.secret : undefined;
    if (typeof secret === 'string') onRotated(secret);
  };
  const ending = health?.secrets.flatMap(({ until }) => (until === null ? [] : [until])) ?? [];
  return (
    <section class="panel" aria-labelledby="secret-title">
      <h2 id="secret-title">Signing secret</h2>
      {ending.map((until) => (
        <p key={until} class="overlap">
          An earlier secret still signs beside the current one. It ends in{' '}
          <Countdown until={until} over="0:00, now" />
        </p>
      ))}
      <form onSubmit={rotate} class="line">
        <label>
          The present secret ends{' '}
          <select
            value={overlap}
            onChange={(event) => setOverlap(Number((event.currentTarget as HTMLSelectElement).value))}
          >
            {overlaps.map(([seconds, text]) => (
              <option key={seconds} value={seconds}>
                {text}
              </option>
            ))}
          </select>
        </label>
        <button type="submit">Rotate the secret</button>
      </form>
      <ProblemNote problem={problem} />
    </section>
  );
}

/** A restored copy holds its deliveries and mails until an administrator releases them. Nothing is shown unless it does. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { Hold as HoldState } from '../api-types.ts';
import { base } from '../description.ts';
import { isObject, type Problem, problemOf, send } from '../send.ts';
import { ConfirmButton } from './confirm-button.tsx';

export function Hold(): JSX.Element | null {
  const [held, setHeld] = useState<HoldState | undefined>(undefined);
  const read = async () => {
    const { json } = await send('GET', `${base.value}/hold`);
    setHeld(isObject(json) && json.held === true ? (json as HoldState) : undefined);
  };
  useEffect(() => void read(), []);
  if (held === undefined) return null;
  const release = async (): Promise<Problem | undefined> => {
    const problem = problemOf(await send('POST', `${base.value}/hold/release`));
    await read();
    return problem;
  };
  return (
    <div class="banner">
      <p>
        <strong>Deliveries and mails are held.</strong> This store was restored from {held.from ?? 'a backup'}
        .
      </p>
      <ConfirmButton action="Release" question="Send what is due?" onConfirm={release} />
    </div>
  );
}

/** The passkeys of the caller's account: added by the browser, renamed, removed. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { Passkeys } from '../api-types.ts';
import { base } from '../description.ts';
import { createPasskey, hasPasskeys } from '../passkeys.ts';
import { isObject, type Problem, problemOf, send } from '../send.ts';
import { type Proof, ProofForm } from './proof-form.tsx';
import { codesIn } from './recovery-codes.tsx';
import { Time } from './value.tsx';

type PasskeyListProps = {
  readonly isEnrolled: boolean;
  readonly hasPasskey: boolean;
  readonly onChange: (codes: readonly string[]) => Promise<void>;
};

type Task = { readonly remove: string } | 'add' | undefined;

export function PasskeyList({ isEnrolled, hasPasskey, onChange }: PasskeyListProps): JSX.Element {
  const { passkeys, read } = usePasskeys();
  const [task, setTask] = useState<Task>(undefined);
  const [name, setName] = useState('');
  const finish = async (codes: readonly string[]) => {
    setTask(undefined);
    await read();
    await onChange(codes);
  };
  const prove = async (proof: Proof): Promise<Problem | undefined> => {
    if (typeof task === 'object') return remove(task.remove, proof, finish);
    return add(name.trim() || 'Passkey', proof, finish);
  };
  return (
    <section aria-labelledby="passkeys-title">
      <h2 id="passkeys-title">Passkeys</h2>
      {passkeys.length === 0 ? <p class="quiet">Your account has no passkey.</p> : null}
      <ul class="plain">
        {passkeys.map((each) => (
          <li key={each.id}>
            <strong>{each.name}</strong>{' '}
            <span class="quiet">
              added <Time value={each.createdAt} />
            </span>{' '}
            <button type="button" class="small danger" onClick={() => setTask({ remove: each.id })}>
              Remove… <span class="hidden">{each.name}</span>
            </button>
          </li>
        ))}
      </ul>
      {hasPasskeys ? (
        <div class="buttons">
          <label>
            Name of a new passkey{' '}
            <input
              value={name}
              maxLength={100}
              placeholder="This computer"
              onInput={(event) => setName(event.currentTarget.value)}
            />
          </label>
          <button type="button" onClick={() => setTask('add')}>
            Add a passkey…
          </button>
        </div>
      ) : (
        <p class="quiet">This browser has no passkeys for this address.</p>
      )}
      {task === undefined ? null : (
        <ProofForm
          {...{ isEnrolled, hasPasskey }}
          action={task === 'add' ? 'Add a passkey' : 'Remove the passkey'}
          onProof={prove}
          onCancel={() => setTask(undefined)}
        />
      )}
    </section>
  );
}

type Finish = (codes: readonly string[]) => Promise<void>;

async function add(name: string, proof: Proof, finish: Finish): Promise<Problem | undefined> {
  const made = await createPasskey(proof);
  if ('problem' in made) return made.problem;
  const reply = await send('POST', `${base.value}/auth/passkeys`, { json: { ...made, name } });
  const problem = problemOf(reply);
  if (problem === undefined) await finish(codesIn(reply.json));
  return problem;
}

async function remove(id: string, proof: Proof, finish: Finish): Promise<Problem | undefined> {
  const path = `${base.value}/auth/passkeys/${encodeURIComponent(id)}/remove`;
  const problem = problemOf(await send('POST', path, { json: proof }));
  if (problem === undefined) await finish([]);
  return problem;
}

function usePasskeys() {
  const [passkeys, setPasskeys] = useState<Passkeys['items']>([]);
  const read = async () => {
    const { json } = await send('GET', `${base.value}/auth/passkeys`);
    setPasskeys(isObject(json) && Array.isArray(json.items) ? (json.items as Passkeys['items']) : []);
  };
  useEffect(() => void read(), []);
  return { passkeys, read };
}

/** The second factor of the caller's account (§5.8): the authenticator application, recovery codes, and passkeys. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { SecondFactor as FactorStatus } from '../api-types.ts';
import { base } from '../description.ts';
import { type Problem, problemOf, send } from '../send.ts';
import { findCaller, mustEnrol } from '../session.ts';
import { EnrolTotp } from './enrol-totp.tsx';
import { PasskeyList } from './passkey-list.tsx';
import { ProblemNote } from './problem.tsx';
import { type Proof, ProofForm } from './proof-form.tsx';
import { codesIn, RecoveryCodes } from './recovery-codes.tsx';
import { Time } from './value.tsx';

type Task = 'enrol' | 'remove' | 'renew' | undefined;

export function SecondFactor(): JSX.Element {
  const { status, problem, read } = useStatus();
  const [task, setTask] = useState<Task>(undefined);
  const [codes, setCodes] = useState<readonly string[]>([]);
  const done = async (shown: readonly string[] = []) => {
    setTask(undefined);
    setCodes(shown);
    await read();
  };
  const stored = () => {
    setCodes([]);
    // The other views open once the codes are stored: before, they would take this page away.
    if (mustEnrol.value) void findCaller();
  };
  if (status === undefined) return <ProblemNote problem={problem} />;
  const proving = { isEnrolled: status.enrolled, hasPasskey: status.passkeys > 0 };
  return (
    <>
      {status.required && !status.enrolled ? (
        <p class="problem" role="alert">
          Your account needs a second factor before it can do anything else. Add one here.
        </p>
      ) : null}
      {codes.length === 0 ? null : <RecoveryCodes codes={codes} onDone={stored} />}
      <Summary status={status} onTask={setTask} />
      {task === 'enrol' ? <EnrolTotp {...proving} onDone={done} onCancel={() => setTask(undefined)} /> : null}
      {task === 'remove' || task === 'renew' ? (
        <ProofForm
          {...proving}
          key={task}
          action={task === 'remove' ? 'Remove the authenticator application' : 'Replace the recovery codes'}
          onCancel={() => setTask(undefined)}
          onProof={(proof) => change(task, proof, done)}
        />
      ) : null}
      <PasskeyList {...proving} onChange={done} />
    </>
  );
}

type SummaryProps = { readonly status: FactorStatus; readonly onTask: (task: Task) => void };

function Summary({ status, onTask }: SummaryProps): JSX.Element {
  const { totp, enrolled, recoveryCodesLeft } = status;
  return (
    <dl class="members">
      <div>
        <dt>Authenticator application</dt>
        <dd class="buttons">
          {totp === null ? (
            'not added'
          ) : (
            <span>
              added <Time value={totp.addedAt ?? ''} />
            </span>
          )}
          <button type="button" class="small" onClick={() => onTask('enrol')}>
            {totp === null ? 'Add' : 'Replace'}
          </button>
          {totp === null ? null : (
            <button type="button" class="small danger" onClick={() => onTask('remove')}>
              Remove…
            </button>
          )}
        </dd>
      </div>
      <div>
        <dt>Recovery codes</dt>
        <dd class="buttons">
          {enrolled ? `${recoveryCodesLeft} left` : 'they come with the first factor'}
          {enrolled ? (
            <button type="button" class="small" onClick={() => onTask('renew')}>
              Replace…
            </button>
          ) : null}
        </dd>
      </div>
    </dl>
  );
}

async function change(
  task: 'remove' | 'renew',
  proof: Proof,
  onDone: (codes: readonly string[]) => Promise<void>,
): Promise<Problem | undefined> {
  const path = task === 'remove' ? 'totp/remove' : 'recovery-codes';
  const reply = await send('POST', `${base.value}/auth/second-factor/${path}`, { json: proof });
  const problem = problemOf(reply);
  if (problem === undefined) await onDone(codesIn(reply.json));
  return problem;
}

function useStatus() {
  const [status, setStatus] = useState<FactorStatus | undefined>(undefined);
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  const read = async () => {
    const reply = await send('GET', `${base.value}/auth/second-factor`);
    setProblem(problemOf(reply));
    if (reply.status === 200) setStatus(reply.json as FactorStatus);
  };
  useEffect(() => void read(), []);
  return { status, problem, read };
}

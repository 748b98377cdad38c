/** The actions of the application that are on no collection, with the forms and answers of the others. */
import type { JSX } from 'preact';
import { Actions, nameOfStep, titleOf } from '../components/action-panel.tsx';
import { actionsBelow, base, type Step } from '../description.ts';
import { rightsIn } from '../rights.ts';

/** The actions that the caller may call. @returns none until the server has answered */
export function freeActions(): readonly Step[] {
  const steps = actionsBelow(base.value, 'base');
  if (steps.length === 0) return steps;
  const rights = rightsIn(undefined);
  return steps.filter((step) => rights?.mayCall(step) === true);
}

export function ActionsPage(): JSX.Element {
  const steps = freeActions();
  return (
    <section aria-labelledby="actions-title">
      <h1 id="actions-title">Actions</h1>
      {steps.length === 0 ? (
        <p class="empty">There is no action that you may call.</p>
      ) : (
        <>
          <p class="quiet">Requests of the application that are on no collection.</p>
          <Actions steps={steps} onDone={() => undefined} />
          <dl class="members">
            {steps
              .filter(({ description }) => description !== undefined)
              .map((step) => (
                <div key={nameOfStep(step)}>
                  <dt>{titleOf(step)}</dt>
                  <dd>{step.description}</dd>
                </div>
              ))}
          </dl>
        </>
      )}
    </section>
  );
}

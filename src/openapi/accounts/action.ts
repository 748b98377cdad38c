/** A POST to an action path (resources/action) as an operation: its content in JSON or as a form, and what it answers. */
import type { ProblemCode } from '../../http/problem-registry.ts';
import type { Components } from '../components.ts';
import type { Item } from '../item.ts';
import { contentCodes } from '../member-traits.ts';
import type { Content, Description } from '../operation.ts';
import { plainRead, type Traits } from '../traits.ts';
import type { Taken } from './account-schemas.ts';

export type Action = Pick<
  Description,
  'id' | 'tag' | 'summary' | 'description' | 'madeFields' | 'schemes'
> & {
  /** Name and schema of its content. */
  readonly takes: readonly [string, Taken];
  readonly contentOptional?: boolean;
  /** Of 200, of 201 where it creates, of 202 where it queues; absent: 204. */
  readonly answer?: Item;
  readonly answerExample?: Item;
  readonly creates?: boolean;
  /** What is asked for is done after the answer. */
  readonly queues?: boolean;
  /** Traits that differ: the gate, whether something stands at the path. */
  readonly traits?: Partial<
    Pick<Traits, 'gate' | 'idempotent' | 'mayBeMissing' | 'mayBeHidden' | 'mayBeClosed'>
  >;
  /** Codes besides those that every content can raise. */
  readonly codes: readonly ProblemCode[];
};

export function actionDescription(action: Action, components: Components): Description {
  const [name, { schema, example }] = action.takes;
  const taken = components.add('schemas', name, schema);
  const { answer, answerExample } = action;
  const content: Content | undefined =
    answer === undefined
      ? undefined
      : {
          'application/json': {
            schema: answer,
            ...(answerExample === undefined ? {} : { example: answerExample }),
          },
        };
  const traits: Traits = {
    ...plainRead,
    ...action.traits,
    method: 'POST',
    action: true,
    silent: answer === undefined,
    contentTypes: ['application/json', 'application/x-www-form-urlencoded'],
    contentOptional: action.contentOptional ?? false,
    creates: action.creates === true ? 'always' : 'never',
    queues: action.queues === true ? 'always' : 'never',
    validators: 'none',
    contentCodes,
    proposalCodes: [
      ...(requires(schema) ? (['field_missing'] as const) : []),
      'validation_failed',
      ...action.codes,
    ],
    resultCodes: [
      'unavailable',
      ...(action.traits?.idempotent === true ? (['idempotency_result_sealed'] as const) : []),
      ...action.codes,
    ],
  };
  return {
    id: action.id,
    tag: action.tag,
    summary: action.summary,
    ...(action.description === undefined ? {} : { description: action.description }),
    ...(action.madeFields === undefined ? {} : { madeFields: action.madeFields }),
    ...(action.schemes === undefined ? {} : { schemes: action.schemes }),
    traits,
    requestContent: {
      'application/json': { schema: taken, example },
      'application/x-www-form-urlencoded': { schema: taken },
    },
    ...(content === undefined ? {} : { content: { changed: content, created: content, queued: content } }),
  };
}

function requires(schema: Item): boolean {
  return Array.isArray(schema.required) && schema.required.length > 0;
}

/**
 * What may be posted as an event (surface "Webhooks out"): the envelope, whose faults are told as those of any content, and the object in
 * it, which must fit the schema of its type where one is declared. A fault in the object is always 422: the request is understood.
 */
import { type TObject, Type } from 'typebox';
import type { Problem } from '../../../http/problem.ts';
import type { Json } from '../../../http/syntax/json.ts';
import type { EventTypes } from '../../../webhooks/outbound/event-types/event-types.ts';
import { isMembers, type Members } from '../../document/json-value.ts';
import { compileValidator, type Validator } from '../../document/validator.ts';

export type Posted = {
  readonly type: string;
  readonly object: Members;
  readonly id?: string;
  readonly tenant?: string;
};

export type PostedValidators = {
  /** The envelope. */
  read(content: unknown): { readonly posted: Posted } | { readonly problem: Problem };
  /** The object, by the schema of its type. */
  payloadProblem(posted: Posted): Problem | undefined;
};

const tenantCharactersMax = 200;
const objectPointer = '/data/object';

const envelope = Type.Object({
  type: Type.String({ minLength: 1 }),
  data: Type.Object({ object: Type.Object({}, { additionalProperties: true }) }),
  id: Type.Optional(Type.String({ minLength: 1 })),
  tenant: Type.Optional(Type.String({ minLength: 1, maxLength: tenantCharactersMax })),
});

export function createPostedValidators(eventTypes: EventTypes, errorsMax: number): PostedValidators {
  const whole = compileValidator({ schema: envelope, textBounds: [] }, errorsMax);
  const payloads = new Map<string, Validator>();
  // Three types of a collection have one schema, and some milliseconds each are worth saving.
  const compiled = new Map<unknown, Validator>();
  for (const { type, schema } of eventTypes.values()) {
    if (schema === undefined) continue;
    const validator =
      compiled.get(schema) ??
      compileValidator({ schema: schema as unknown as TObject, textBounds: [] }, errorsMax);
    compiled.set(schema, validator);
    payloads.set(type, validator);
  }
  return {
    read(content) {
      if (!isMembers(content)) {
        const errors = [{ pointer: '', message: 'must be an object' }];
        return { problem: { code: 'validation_failed', errors } };
      }
      const { missing, invalid } = whole.check(content);
      if (missing.length + invalid.length === 0) return { posted: postedOf(content) };
      const code = missing.length > 0 ? 'field_missing' : 'validation_failed';
      return { problem: { code, errors: [...missing, ...invalid].slice(0, errorsMax) } };
    },
    payloadProblem({ type, object }) {
      const faults = payloads.get(type)?.check(object);
      if (faults === undefined) return undefined;
      const errors = [...faults.missing, ...faults.invalid].slice(0, errorsMax);
      if (errors.length === 0) return undefined;
      const placed = errors.map(({ pointer, message }) => ({ pointer: objectPointer + pointer, message }));
      return { code: 'validation_failed', errors: placed };
    },
  };
}

/** Of content that the envelope's schema allows. */
function postedOf(content: Members): Posted {
  const { type, data, id, tenant } = content as { type: string; data: { object: Json } } & Members;
  return {
    type,
    object: data.object as Members,
    ...(typeof id === 'string' ? { id } : {}),
    ...(typeof tenant === 'string' ? { tenant } : {}),
  };
}

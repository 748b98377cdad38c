/**
 * Builds one operation of the document from its `Traits` and its texts: parameters, content, and a response for every
 * status with which the decision graph or the server can end it.
 */
import { type AnswerName, answers } from '../http/conduct/answers.ts';
import type { Content, Item, OwnCode, SchemeName } from '../kernel/documentation.ts';
import type { Components } from './components.ts';
import { refusals } from './refusals.ts';
import { requestFields } from './request-fields.ts';
import { answerFields, type FieldName, fieldItems, rateFields } from './response-fields.ts';
import { endsOf, type Traits } from './traits.ts';

export type Description = {
  readonly id: string;
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
  readonly traits: Traits;
  readonly deprecated?: boolean;
  /** Without the request header fields, which the traits determine. */
  readonly parameters?: readonly Item[];
  readonly preferences?: readonly string[];
  readonly requestContent?: Content;
  /** Content by response; a response that is missing here has none. */
  readonly content?: Readonly<Partial<Record<AnswerName, Content>>>;
  readonly representationFields?: readonly FieldName[];
  /** Fields of the response to a change, and of a 303 to a read. */
  readonly madeFields?: readonly FieldName[];
  readonly constantFields?: readonly FieldName[];
  /** Accept-* fields of its 415. */
  readonly accepts?: readonly FieldName[];
  /** Codes that the application refuses with. */
  readonly ownCodes?: readonly OwnCode[];
  /** Members of its 409 that count dependants. */
  readonly counts?: readonly string[];
  /** The schemes that it accepts; undefined: all. */
  readonly schemes?: readonly SchemeName[];
};

export type OperationSetting = {
  readonly components: Components;
  /** Requirements of the document's schemes, without the empty alternative. */
  readonly security: readonly Item[];
  readonly verifiedEmailRequired: boolean;
};

export function operationItem(described: Description, setting: OperationSetting): Item {
  const { components } = setting;
  const { traits, parameters = [], preferences = [], requestContent } = described;
  const ends = endsOf(traits, setting.verifiedEmailRequired);
  const security = described.schemes?.map((name) => ({ [name]: [] })) ?? setting.security;
  const allParameters = [...parameters, ...requestFields(traits, preferences, components)];
  return {
    operationId: described.id,
    tags: [described.tag],
    summary: described.summary,
    ...(described.description === undefined ? {} : { description: described.description }),
    ...(described.deprecated === true ? { deprecated: true } : {}),
    ...(allParameters.length === 0 ? {} : { parameters: allParameters }),
    ...(requestContent === undefined
      ? {}
      : { requestBody: { required: !traits.contentOptional, content: requestContent } }),
    responses: byStatus({
      ...answerItems(described, ends.answers, components),
      ...refusals(ends.refusals, {
        components,
        accepts: described.accepts ?? [],
        constantFields: described.constantFields ?? [],
        traits,
        counts: described.counts ?? [],
        own: described.ownCodes ?? [],
      }),
    }),
    security: traits.gate.anonymous ? [{}, ...security] : security,
  };
}

/** Responses with the same status are merged: a stream and a representation are both 200. */
function answerItems(
  described: Description,
  names: ReadonlySet<AnswerName>,
  components: Components,
): Record<string, Item> {
  const own = {
    representation: described.representationFields ?? [],
    made: described.madeFields ?? [],
    constant: described.constantFields ?? [],
  };
  const gathered = new Map<number, { meanings: string[]; fields: FieldName[]; content: Content }>();
  for (const name of Object.keys(answers) as AnswerName[]) {
    if (!names.has(name)) continue;
    const { status, meaning } = answers[name];
    const entry = gathered.get(status) ?? { meanings: [], fields: [...own.constant], content: {} };
    entry.meanings.push(meaning);
    entry.fields.push(...answerFields(name, described.traits, own), ...rateFields(described.traits, status));
    const content = described.traits.method === 'HEAD' ? {} : (described.content?.[name] ?? {});
    gathered.set(status, { ...entry, content: { ...entry.content, ...content } });
  }
  return Object.fromEntries(
    [...gathered].map(([status, { meanings, fields, content }]) => [
      String(status),
      {
        description: meanings.join('\n\n'),
        headers: fieldItems(fields, components),
        ...(Object.keys(content).length === 0 ? {} : { content }),
      },
    ]),
  );
}

function byStatus(responses: Record<string, unknown>): Item {
  return Object.fromEntries(Object.entries(responses).sort(([a], [b]) => Number(a) - Number(b)));
}

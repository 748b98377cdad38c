/** The actions of an application as resources: the operations at one path together, with their documentation. */
import type { TObject } from 'typebox';
import { type DeclaredAction, isOwnOutput } from '../../config/actions.ts';
import type { ProblemCode } from '../../http/problem-registry.ts';
import { problems } from '../../http/problem-registry.ts';
import {
  type Content,
  type Item,
  json,
  type OperationDocumentation,
  pathParameter,
  type Tag,
} from '../../kernel/documentation.ts';
import { operationSchema } from '../../kernel/operations/operation-routes.ts';
import type { Operation, Resource } from '../../kernel/resource.ts';
import { withoutRule } from '../../model/logic/actions.ts';
import type { Serving } from '../../resources/collection/served-collection.ts';
import type { OpenTransaction } from '../transaction/resource-call.ts';
import { type ActionInput, demandedMembers, typesOf, type Uploads } from './action-content.ts';
import { fieldsOf } from './action-octets.ts';
import {
  type ActionServices,
  actionOperation,
  isSafeAction,
  mediaTypeOf,
  outputKind,
} from './action-operation.ts';

export function actionResources(
  { store, clock, base, turns, settings, tracing, files }: Serving,
  actions: readonly DeclaredAction[],
  open: OpenTransaction,
): readonly Resource[] {
  const services: ActionServices = { store, clock, turns, open, limits: settings, tracing, files };
  const byPattern = Map.groupBy(actions, ({ pattern }) => pattern);
  return [...byPattern.values()].flatMap((sharing) => {
    const [first] = sharing;
    if (first === undefined) return [];
    const operations = sharing.map((action) => {
      const { operation, input } = actionOperation(action, services);
      return [
        action.method,
        { ...operation, documentation: documentationOf(action, operation, input) },
      ] as const;
    });
    return [
      {
        pattern: `${base}${first.pattern}`,
        documentation: {
          name: nameOf(first),
          tag: first.collection ?? ownTag,
          ...parametersOf(first),
        },
        operations: new Map<string, Operation>(operations),
        constantFields: [],
        offers: ['application/json'],
      },
    ];
  });
}

const ownTag: Tag = { name: 'actions', description: 'What this application does besides its collections.' };

/** `TicketsMerge`, `CallPing`: no operation of a collection is named so. */
function nameOf({ name, collection }: DeclaredAction): string {
  return `${pascal(collection?.name ?? 'call')}${pascal(name)}`;
}

function pascal(name: string): string {
  return name
    .split('-')
    .map((word) => word.slice(0, 1).toUpperCase() + word.slice(1))
    .join('');
}

function parametersOf({ on, captures }: DeclaredAction) {
  const parameters = [
    ...(on === 'member' ? [pathParameter('id', 'Id of the member.')] : []),
    ...captures.map((name) => pathParameter(name, `\`${name}\` in the path.`)),
  ];
  return parameters.length === 0 ? {} : { parameters };
}

function documentationOf(
  action: DeclaredAction,
  operation: Operation,
  input: ActionInput,
): OperationDocumentation {
  const { on, collection, rule, summary, description, codes } = action;
  const safe = isSafeAction(action);
  const name = nameOf(action);
  const isRedirect = outputKind(action) === 'redirect';
  const standing =
    on === 'member' && collection !== undefined ? { member: { collection, action: 'update', rule } } : {};
  return {
    id: name.slice(0, 1).toLowerCase() + name.slice(1),
    summary: summary ?? `Call the action ${action.name}`,
    ...(description === undefined ? {} : { description }),
    action: { name: action.name, on },
    ...takenBy(action, input),
    gives: {
      ...givenBy(action, safe),
      ...(operation.asynchronous === true ? { accepted: json(operationSchema) } : {}),
    },
    ...(isRedirect && safe ? { redirects: 'always' } : {}),
    ...fileFields(action, safe),
    ...(standing as Pick<OperationDocumentation, 'member'>),
    codes: [...inputCodes(input), ...registered(codes), 'refused_by_application'],
    ownCodes: [...(codes ?? [])].flatMap(([code, status]) =>
      isRegistered(code) ? [] : [{ code, status: status ?? problems.refused_by_application.status }],
    ),
  };
}

function givesContent(action: DeclaredAction): boolean {
  return action.output !== undefined && outputKind(action) !== 'redirect';
}

function takenBy(
  { example, references }: DeclaredAction,
  input: ActionInput,
): Pick<OperationDocumentation, 'takes' | 'parameters'> {
  const { inQuery, uploads } = input;
  if (input.schema === undefined) return {};
  const schema = forForms(input.schema, references);
  if (uploads.size > 0) return { takes: { [typesOf(input)[0] ?? '']: describedUploads(schema, uploads) } };
  if (!inQuery) {
    const [jsonType = '', ...forms] = typesOf(input);
    const shown = example.input === undefined ? { schema } : { schema, example: example.input };
    return {
      takes: Object.fromEntries([[jsonType, shown], ...forms.map((type) => [type, { schema }] as const)]),
    };
  }
  const required = demandedMembers(schema);
  return {
    parameters: Object.entries(schema.properties).map(([name, part]) => {
      const { description, ...plain } = part as { description?: unknown; type?: unknown };
      return {
        ...{ name, in: 'query', required: required.includes(name), schema: plain },
        ...(typeof description === 'string' ? { description } : {}),
        ...(plain.type === 'object' ? { style: 'deepObject', explode: true } : {}),
      };
    }),
  };
}

/** With what forms need to know of members: the collections that they refer to, and defaults, as collections have them. */
function forForms(schema: TObject, references: DeclaredAction['references']): TObject {
  const properties = Object.entries(schema.properties).map(([name, member]) => {
    const { default: preset, description = '' } = member as { default?: unknown; description?: unknown };
    const target = references.get(name);
    const shown = {
      ...(target === undefined ? {} : { 'x-references': target }),
      ...(preset === undefined ? {} : { 'x-default': preset, 'x-help': description }),
    };
    return [name, Object.keys(shown).length === 0 ? member : { ...member, ...shown }];
  });
  return { ...schema, properties: Object.fromEntries(properties) };
}

/** The parts that are files, with the types that they may have (OpenAPI 3.2, Encoding Object). */
function describedUploads(schema: TObject, uploads: Uploads): Item {
  const properties = Object.entries(schema.properties).map(([name, member]) => {
    const { items, ...list } = member as { items?: object };
    const part = items === undefined ? withoutRule(member) : { ...list, items: withoutRule(items) };
    return [name, uploads.has(name) ? part : member];
  });
  const encoding = [...uploads].flatMap(
    ([
      name,
      {
        rule: { mediaTypes },
      },
    ]) => (mediaTypes === undefined ? [] : [[name, { contentType: mediaTypes.join(', ') }]]),
  );
  return {
    schema: { ...schema, properties: Object.fromEntries(properties) },
    ...(encoding.length === 0 ? {} : { encoding: Object.fromEntries(encoding) }),
  };
}

function givenBy(action: DeclaredAction, safe: boolean): OperationDocumentation['gives'] {
  const { output, example } = action;
  if (output === undefined || !givesContent(action)) return {};
  const content: Content = isOwnOutput(output)
    ? { [mediaTypeOf(output)]: output.kind === 'text' ? { schema: { type: 'string' } } : { schema: {} } }
    : json({ ...output }, example.output);
  return { [safe ? 'representation' : 'changed']: content };
}

function fileFields({ output }: DeclaredAction, safe: boolean): Partial<OperationDocumentation> {
  const names = fieldsOf({ output });
  // The handler may give octets a name and a type that browsers run.
  const mayHaveAny = output !== undefined && isOwnOutput(output) && output.kind === 'bytes';
  const fields = (['Comity-Content', 'Content-Disposition', 'Content-Security-Policy'] as const).filter(
    (name) => mayHaveAny || names.includes(name),
  );
  if (fields.length === 0) return {};
  return safe ? { representationFields: fields } : { madeFields: fields };
}

function inputCodes({ schema, inQuery }: ActionInput): readonly ProblemCode[] {
  if (schema === undefined) return [];
  if (inQuery) return ['query_parameter_invalid'];
  return [...(demandedMembers(schema).length > 0 ? (['field_missing'] as const) : []), 'validation_failed'];
}

function registered(codes: DeclaredAction['codes']): readonly ProblemCode[] {
  return [...(codes?.keys() ?? [])].filter(isRegistered);
}

function isRegistered(code: string): code is ProblemCode {
  return Object.hasOwn(problems, code);
}

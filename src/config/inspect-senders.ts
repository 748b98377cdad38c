/**
 * Checks the declared senders of webhooks (§4.14) and applies their presets; src/config/senders has a file for each part of a declaration.
 * Every mistake is reported at once, and the result is then unusable.
 */
import { type TInteger, type TOptional, Type } from 'typebox';
import { schemes } from '../model/endpoint.ts';
import { presetNames, presets } from '../webhooks/presets.ts';
import type { Challenge, OpenChallenge, Place, SenderRule } from '../webhooks/sender-rule.ts';
import { type PublicJwk, publicKeyOf } from '../webhooks/signature/key-pair.ts';
import {
  type KeyAlgorithm,
  keyAlgorithmOf,
  type SignatureRule,
  usesSecrets,
} from '../webhooks/signature/signature-rule.ts';
import { inspectNamed, inspectSignature } from './inspect-signature.ts';
import { isRecord, kindOf } from './inspection.ts';
import { isLoopbackHost } from './oauth-providers.ts';
import { reservedHeaderNames } from './reserved-names.ts';
import { createVariables, type Variables } from './sender-secrets.ts';
import { type DeclaredSender, type HandOnTo, handOnScheduleDefault } from './senders.ts';
import {
  choiceOf,
  descriptionShape,
  functionAs,
  headerNameShape,
  inspectShape,
  isHeaderName,
  listInParts,
  namedParts,
  type Reporter,
  type SoundParts,
  textThat,
  textUpTo,
  unshaped,
  wholeWithin,
} from './shape.ts';
import { scheduleShape } from './webhook-schedules.ts';

type Written = Readonly<Record<string, unknown>>;

const sendersMax = 1000;
const senderName = /^[a-z0-9][a-z0-9-]{0,63}$/;
const textCharactersMax = 200;
const keptMax = 64;
const publicKeysMax = 10;
const urlCharactersMax = 2000;
const placesMax = 16;
const pointerCharactersMax = 500;
const formNameCharactersMax = 200;

/** RFC 6901 §3. */
const pointer = /^(?:\/(?:[^~/]|~[01])*)*$/;

function pointerSuchAs(example: string) {
  return textThat((written) => written.length <= pointerCharactersMax && pointer.test(written), {
    must: `must be a JSON Pointer, such as ${example}`,
  });
}

const inFlightMost = 1024;
export const inFlightShape: TOptional<TInteger> = Type.Optional(wholeWithin(1, inFlightMost));

/** A place has one of the members. */
const placeShape = Type.Object({
  header: headerNameShape,
  json: pointerSuchAs('/data/id'),
  form: textUpTo(formNameCharactersMax, 'must be the name of a form field'),
});
const proofShape = Type.Object({
  name: textUpTo(textCharactersMax),
  encoding: choiceOf(['hex', 'base64'] as const),
  prefix: Type.String({ maxLength: textCharactersMax }),
});
/** The question whether the endpoint exists, as a signed message ... */
const signedChallengeShape = Type.Object({
  json: pointerSuchAs('/challenge'),
  is: textUpTo(textCharactersMax),
  answer: Type.Optional(textUpTo(textCharactersMax)),
  echo: pointerSuchAs('/challenge'),
  proof: Type.Optional(proofShape),
});
/** ... or as a request without a signature. */
const openChallengeShape = Type.Object({
  kind: choiceOf(['query-echo', 'header-echo', 'hmac'] as const),
  method: Type.Optional(choiceOf(['GET', 'HEAD', 'POST'] as const)),
  query: Type.Optional(textUpTo(textCharactersMax)),
  header: Type.Optional(headerNameShape),
  answer: Type.Optional(textUpTo(textCharactersMax)),
  proof: Type.Optional(proofShape),
  setsSecret: Type.Optional(Type.Boolean()),
  token: Type.Optional(textUpTo(textCharactersMax)),
});
const answersShape = Type.Object({
  accepted: Type.Optional(amongStatuses(200, 204)),
  refused: Type.Optional(amongStatuses(400, 401, 403, 406)),
});

function amongStatuses<const Status extends number>(...statuses: readonly Status[]) {
  const must = `must be one of ${statuses.join(', ')}`;
  return Type.Unsafe<Status>(
    Type.Refine(Type.Unknown({ must }), (written) => statuses.some((status) => status === written)),
  );
}
const keysUrlRule =
  'must be an https URL without user and fragment (http:// only for 127.0.0.1, [::1] and localhost)';
const senderShape = Type.Object(
  {
    description: descriptionShape,
    preset: Type.Optional(choiceOf(presetNames, { shows: 'nearest' })),
    ...unshaped('signature', 'dedupe', 'type', 'secretVariable', 'forward', 'challenge'),
    answers: Type.Optional(answersShape),
    jsonInForm: Type.Optional(textUpTo(formNameCharactersMax, 'must be the name of a form field')),
    keep: Type.Optional(
      listInParts(headerNameShape, {
        ...{ maxItems: keptMax, holds: 'names' },
        must: 'must be a list of names of header fields',
      }),
    ),
    handler: Type.Optional(functionAs('must be a function of ({ message, resources })')),
    verify: Type.Optional(functionAs('must be a function of ({ body, headers, url, secrets })')),
    publicKeys: Type.Optional(
      Type.Array(
        Type.Unsafe<string | PublicJwk>(Type.Union([Type.String(), Type.Object({ kty: Type.String() })])),
        {
          maxItems: publicKeysMax,
          must: `must be a list of at most ${publicKeysMax} public keys`,
        },
      ),
    ),
    keysUrl: Type.Optional(
      textThat(isTrustworthy, {
        must: keysUrlRule,
      }),
    ),
    schedule: Type.Optional(scheduleShape),
    inFlightMax: inFlightShape,
  },
  { calls: 'property of a sender' },
);

export function inspectSenders(written: unknown, mistakes: string[]): ReadonlyMap<string, DeclaredSender> {
  const found = new Map<string, DeclaredSender>();
  const variables = createVariables();
  const report: Reporter = (sentence) => void mistakes.push(sentence);
  for (const [name, declaration] of namedParts(written, 'senders', report, { maxItems: sendersMax })) {
    const refuse: Reporter = (predicate) => report(`sender ${name}: ${predicate}`);
    if (!senderName.test(name)) refuse(`the name ${nameRule}${suggestedName(name)}`);
    if (!isRecord(declaration)) refuse(`must be an object, not ${kindOf(declaration)}`);
    else {
      const sender = inspectSender(name, declaration, variables, refuse);
      if (sender !== undefined) found.set(name, sender);
    }
  }
  return found;
}

const nameRule =
  'is part of the path and must be up to 64 lower-case letters, digits and -, and not begin with -';

function suggestedName(name: string): string {
  const meant = name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-');
  return senderName.test(meant) ? `; did you mean ${meant}?` : '';
}

function inspectSender(
  name: string,
  written: Written,
  variables: Variables,
  refuse: Reporter,
): DeclaredSender | undefined {
  const sound = inspectShape(senderShape, written, '', refuse) ?? {};
  const { description = '', preset, publicKeys = [], schedule, inFlightMax } = sound;
  if (written.preset === undefined && written.signature === undefined && written.verify === undefined)
    refuse(`must have a preset (${presetNames.join(', ')}), a signature or verify`);
  if (written.verify !== undefined && written.signature !== undefined)
    refuse('verify takes the place of the signature: leave one of them out');
  const rule = inspectRule(written, sound, refuse);
  const use = { name, refuse };
  const secretVariable = variables.take({ ...use, use: 'receive' }, written.secretVariable);
  const challengeVariable =
    rule?.challenge !== undefined && !('json' in rule.challenge) && rule.challenge.token !== undefined
      ? variables.take({ ...use, use: 'challenge' }, undefined)
      : undefined;
  const handOn = inspectHandOn(
    written,
    (forward) => variables.take({ ...use, use: 'forward' }, forward, 'forward.'),
    refuse,
  );
  if (rule === undefined) return undefined;
  if (rule.signature.kind !== 'function') inspectNamed(rule.signature, refuse);
  const keysUrl = inspectKeys(sound, rule.signature, refuse);
  return {
    ...{ name, description, preset: preset ?? null, rule, secretVariable, publicKeys, handOn, inFlightMax },
    ...given('challengeVariable', challengeVariable),
    keysUrl: keysUrl === undefined ? undefined : new URL(keysUrl),
    schedule: schedule ?? handOnScheduleDefault,
  };
}

/** The rule of the preset with the written parts replaced. Without a preset, messages have only what is written. */
function inspectRule(
  written: Written,
  { preset, keep, answers, jsonInForm }: SoundParts<typeof senderShape>,
  refuse: Reporter,
): DeclaredSender['rule'] | undefined {
  const base = preset === undefined ? undefined : presets[preset];
  // An unknown preset is one mistake already; its missing parts are not reported again.
  const lacksBase = written.preset !== undefined && preset === undefined;
  const signature = lacksBase ? undefined : signatureOf(written, base?.signature, refuse);
  const places = written.dedupe === undefined ? undefined : inspectPlaces('dedupe', written.dedupe, refuse);
  const type = written.type === undefined ? undefined : inspectType(written.type, refuse);
  const challenge = inspectChallenge(written.challenge, signature ?? base?.signature, refuse);
  const kept = keep === undefined ? undefined : inspectKeep(keep, signature, refuse);
  if (signature === undefined) return undefined;
  return {
    signature,
    dedupe: places ?? base?.dedupe ?? [],
    type: type ?? base?.type ?? [],
    challenge: challenge ?? base?.challenge,
    ...given('answers', (answers as SenderRule['answers']) ?? base?.answers),
    ...given('jsonInForm', jsonInForm ?? base?.jsonInForm),
    keep: kept ?? base?.keep ?? [],
  };
}

type Signature = DeclaredSender['rule']['signature'];

function signatureOf(
  written: Written,
  preset: SignatureRule | undefined,
  refuse: Reporter,
): Signature | undefined {
  return written.verify === undefined
    ? inspectSignature(written.signature, preset, refuse)
    : { kind: 'function' };
}

function given<const Name extends string, Value>(name: Name, value: Value | undefined) {
  return value === undefined ? {} : ({ [name]: value } as Readonly<Record<Name, Value>>);
}

function inspectChallenge(
  written: unknown,
  signature: Signature | undefined,
  refuse: Reporter,
): Challenge | undefined {
  if (written === undefined) return undefined;
  const isSigned = isRecord(written) && 'json' in written;
  const shape = isSigned ? signedChallengeShape : openChallengeShape;
  const sound = inspectShape(shape, written, 'challenge', refuse) as Challenge | undefined;
  if (sound === undefined) return undefined;
  if (sound.proof !== undefined && signature !== undefined && signature.kind !== 'hmac')
    refuse('challenge.proof needs the secret of a signature of the kind hmac');
  if (!('kind' in sound)) return sound;
  const fault = faultOfOpen(sound);
  if (fault !== undefined) refuse(`challenge ${fault}`);
  if (sound.setsSecret === true && signature !== undefined && signature.kind !== 'hmac')
    refuse('challenge.setsSecret needs the secret of a signature of the kind hmac');
  return 'header' in sound ? { ...sound, header: sound.header?.toLowerCase() } : sound;
}

/** The mistake in what goes together, as the predicate of a sentence. */
function faultOfOpen({ kind, method, ...others }: OpenChallenge): string | undefined {
  const { query, header, proof, answer, token, setsSecret } = others;
  if (query !== undefined && header !== undefined) return 'must have either query or header, not both';
  if (kind === 'header-echo' && header === undefined) return 'of the kind header-echo must have a header';
  if (kind === 'query-echo' && (header !== undefined || (query === undefined && method !== 'HEAD')))
    return 'of the kind query-echo must have a query';
  if (kind === 'hmac' && query === undefined && header === undefined) return 'must have a query or a header';
  if ((kind === 'hmac') !== (proof !== undefined))
    return 'has a proof if it is of the kind hmac, and only then';
  if (setsSecret !== true) return undefined;
  if (kind !== 'header-echo' || method !== 'POST') return 'that sets the secret is a header-echo by POST';
  return answer === undefined && token === undefined
    ? undefined
    : 'that sets the secret returns the header alone: leave out answer and token';
}

const credentials: ReadonlySet<string> = new Set(['authorization', 'cookie', 'proxy-authorization']);

/** Checks the header fields that are kept with a message. Secrets are refused: handlers see the kept fields, and forwarding sends them on. */
function inspectKeep(
  written: readonly (string | undefined)[],
  signature: Signature | undefined,
  refuse: Reporter,
): readonly string[] {
  const names = written.map((name) => name?.toLowerCase() ?? '');
  for (const [at, name] of names.entries()) {
    if (credentials.has(name) || (signature?.kind === 'token' && signature.header === name))
      refuse(`keep[${at}] is ${name}, which holds a secret and is not kept`);
  }
  return [...new Set(names)];
}

/**
 * Keys must be of the sender's algorithm, and a sender that signs by a key pair alone needs some.
 * @returns the URL of its JWK set: the declared one, or else that of its rule unless there are keys
 */
function inspectKeys(
  { publicKeys, keysUrl }: SoundParts<typeof senderShape>,
  signature: Signature,
  refuse: Reporter,
): string | undefined {
  const algorithm = keyAlgorithmOf(signature);
  for (const [member, value] of Object.entries({ publicKeys, keysUrl })) {
    if (value !== undefined && algorithm === undefined)
      refuse(`${member} has no effect, because no signature of this sender uses a key pair`);
  }
  if (algorithm === undefined) return undefined;
  if ('certificateHosts' in signature && signature.certificateHosts !== undefined) {
    if (publicKeys !== undefined || keysUrl !== undefined)
      refuse('publicKeys and keysUrl have no effect, because messages of this sender name their certificate');
    return undefined;
  }
  const written =
    keysUrl ?? (publicKeys === undefined && signature.kind === 'jwt' ? signature.keysUrl : undefined);
  if (written !== undefined && !isTrustworthy(written)) refuse(`signature.keysUrl ${keysUrlRule}`);
  if (!usesSecrets(signature) && publicKeys === undefined && written === undefined)
    refuse('must have publicKeys or keysUrl, by which its signatures are verified');
  for (const [at, key] of (publicKeys ?? []).entries()) {
    const fault = faultOfKey(key ?? '', algorithm);
    if (fault !== undefined) refuse(`publicKeys[${at}]: ${fault}`);
  }
  return written;
}

/** The keys decide which signatures are valid, so they must arrive unaltered. */
function isTrustworthy(written: string): boolean {
  const url = written.length <= urlCharactersMax ? URL.parse(written) : null;
  if (url === null) return false;
  const { protocol, hostname, username, password, hash } = url;
  if (username !== '' || password !== '' || hash !== '') return false;
  return protocol === 'https:' || (protocol === 'http:' && isLoopbackHost(hostname));
}

function faultOfKey(key: string | PublicJwk, algorithm: KeyAlgorithm): string | undefined {
  try {
    publicKeyOf(key, algorithm);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

/** Checks where a sender's messages have their id and type (§6.3). The first place that holds a text counts. */
function inspectPlaces(place: string, written: unknown, refuse: Reporter): readonly Place[] {
  if (!Array.isArray(written) || written.length > placesMax) {
    refuse(
      `${place} must be a list of at most ${placesMax} places, such as [{ json: '/id' }], not ${sizeOf(written)}`,
    );
    return [];
  }
  return written.flatMap((each: unknown, at) => inspectPlace(`${place}[${at}]`, each, refuse));
}

/** Checks a list of lists of places; all places of an inner list must hold a text. */
function inspectType(written: unknown, refuse: Reporter): readonly (readonly Place[])[] {
  if (!Array.isArray(written) || written.length > placesMax) {
    refuse(
      `type must be a list of at most ${placesMax} lists of places, such as [[{ json: '/type' }]], not ${sizeOf(written)}`,
    );
    return [];
  }
  return written.map((each: unknown, at) => {
    const places = inspectPlaces(`type[${at}]`, each, refuse);
    if (Array.isArray(each) && each.length === 0) refuse(`type[${at}] must hold at least one place`);
    return places;
  });
}

function inspectPlace(place: string, written: unknown, refuse: Reporter): readonly Place[] {
  const [[kind = '', value] = [], ...others] = isRecord(written) ? Object.entries(written) : [];
  if (others.length > 0 || !(kind === 'header' || kind === 'json' || kind === 'form')) {
    refuse(`${place} must be one of { header }, { json } and { form }`);
    return [];
  }
  const sound = inspectShape(placeShape.properties[kind], value, `${place}.${kind}`, refuse);
  if (sound === undefined) return [];
  return [{ [kind]: kind === 'header' ? sound.toLowerCase() : sound } as Place];
}

function sizeOf(written: unknown): string {
  return Array.isArray(written) ? `${written.length}` : kindOf(written);
}

const handlerParametersMax = 2;

const forwardShape = Type.Object({
  url: textThat(isReachable, {
    must: 'must be an http or https URL without user, password and fragment',
  }),
  scheme: Type.Optional(choiceOf(schemes)),
  ...unshaped('secretVariable', 'headers'),
});

/** @param variableOf resolves the variable of the secret that signs forwarded messages */
function inspectHandOn(
  { handler, forward }: Written,
  variableOf: (written: unknown) => string,
  refuse: Reporter,
): HandOnTo {
  if (handler !== undefined && forward !== undefined) {
    refuse('handler and forward must not both be set; a handler can forward messages itself');
  }
  if (handler !== undefined) {
    if (typeof handler === 'function' && handler.length > handlerParametersMax)
      refuse(`handler has ${handler.length} parameters, and is given two: message and resources`);
    return { kind: 'handler' };
  }
  return forward === undefined ? { kind: 'inbox' } : inspectForward(forward, variableOf, refuse);
}

function inspectForward(
  written: unknown,
  variableOf: (written: unknown) => string,
  refuse: Reporter,
): HandOnTo {
  const { url, scheme, secretVariable, headers } =
    inspectShape(forwardShape, written, 'forward', refuse) ?? {};
  return {
    kind: 'forward',
    url: new URL(url ?? 'http://localhost'),
    scheme: scheme ?? 'standard',
    secretVariable: variableOf(secretVariable),
    headers: headers === undefined ? {} : inspectForwardHeaders(headers, refuse),
  };
}

/** A password would appear in logs; it belongs in `headers`. */
function isReachable(text: string): boolean {
  const url = text.length <= urlCharactersMax ? URL.parse(text) : null;
  if (url === null) return false;
  const { protocol, username, password, hash } = url;
  return (protocol === 'http:' || protocol === 'https:') && username === '' && password === '' && hash === '';
}

const headersMax = 32;
const valueCharactersMax = 4096;

/** Comity's own fields, which identify the origin of a message. */
const ownPrefix = 'comity-';

/** RFC 9110 §5.5. */
const fieldValue = /^(?:[!-~](?:[\t -~]*[!-~])?)?$/;

/**
 * Checks the header fields of forwarded messages. As for endpoints, fields that frame the message, belong to the connection or identify the
 * signer are refused.
 */
function inspectForwardHeaders(written: unknown, refuse: Reporter): Readonly<Record<string, string>> {
  if (!isRecord(written)) {
    refuse(`forward.headers must be an object, not ${kindOf(written)}`);
    return {};
  }
  const entries = Object.entries(written);
  if (entries.length > headersMax) refuse(`forward.headers may hold ${headersMax} fields at most`);
  const headers = new Map<string, string>();
  for (const [field, value] of entries) {
    const name = field.toLowerCase();
    const place = `forward.headers["${field}"]`;
    if (!isHeaderName(field)) refuse(`${place} is not the name of a header field`);
    else if (reservedHeaderNames.has(name) || name.startsWith(ownPrefix))
      refuse(`${place} is a field that Comity sets itself`);
    else if (headers.has(name)) refuse(`${place} is declared twice`);
    else if (typeof value !== 'string' || value.length > valueCharactersMax || !fieldValue.test(value)) {
      refuse(
        `${place} must be a text of at most ${valueCharactersMax} characters that a header field can hold`,
      );
    } else headers.set(name, value);
  }
  return Object.fromEntries(headers);
}

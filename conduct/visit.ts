/**
 * One clause's visit to the server: requests with the credentials of the target, members that it creates and removes again, and every
 * exchange as evidence.
 */
import { type Answer, fieldOf, jsonOf, valuesOf } from './answer.ts';
import { type Connection, type Outcome, openConnection, type Protocol } from './connection.ts';
import { documentIn } from './document.ts';
import { type Exchange, evidenceOf } from './evidence.ts';
import { Limited, withPatience } from './patience.ts';
import { exchange, type Request, requestText } from './request.ts';
import { documentPath, pathOf, sampleOf, type Target } from './target.ts';

/** A member that the visit created. */
export type Member = {
  readonly path: string;
  /** The ETag field of the newest answer with one. */
  readonly tag: string | undefined;
};

/** A clause that cannot go on because an exchange gave nothing to judge; the runner makes it a verdict. */
export class NoAnswer extends Error {}

/** A clause that has no subject at this server. */
export class CannotApply extends Error {}

/** What is known of the target before a clause is judged (`survey.ts`). */
export type Survey = {
  /** The methods of the collection, and of a member, by their Allow; undefined where no answer has it. */
  readonly collectionAllow: ReadonlySet<string> | undefined;
  readonly memberAllow: ReadonlySet<string> | undefined;
  /** The path of a member that stands while clauses run; undefined where there is none. */
  readonly member: string | undefined;
  /** Members that stood and were lost during the run. */
  readonly gone: readonly string[];
  /** Why nothing can be created; undefined where it can. */
  readonly cannotCreate: string | undefined;
  /** The media types of patches that a member takes, in lower case. */
  readonly patchTypes: ReadonlySet<string>;
  /** A QUERY that is answered with 2xx. */
  readonly query: { readonly type: string; readonly content: string } | undefined;
  /** The status of a QUERY, whatever its content: 405 and 501 mean that the server has none. */
  readonly queryStatus: number | undefined;
  /** True if strangers may not read the collection: they get 401 or 403, and a request with credentials does not. */
  readonly isClosed: boolean;
  /** A request that strangers are refused: reading, or else creating; undefined where they may do both. */
  readonly closed: 'GET' | 'POST' | undefined;
};

const exchangesMax = 40;
/** Of a request in a message. */
const askedCharactersMax = 200;

type OctetsOptions = { readonly method?: string; readonly waitMs?: number };

/** Its functions may be taken off it, as clauses do. */
export class Visit {
  readonly target: Target;
  readonly survey: Survey;
  readonly #exchanges: Exchange[] = [];
  readonly #connections: Connection[] = [];
  readonly #made = new Set<string>();

  constructor(target: Target, survey: Survey) {
    this.target = target;
    this.survey = survey;
  }

  /** What was exchanged so far. */
  get exchanges(): readonly Exchange[] {
    return this.#exchanges;
  }

  /** The octets of a request of HTTP/1.1 with `Connection: close`. */
  octetsOf = (request: Request): string => requestText(this.target, request);

  /** Keeps an exchange on a connection of `open` as evidence. */
  note = (request: string, outcome: Outcome): void => {
    if (this.#exchanges.length >= exchangesMax) return;
    const { headers, tunnel } = this.target;
    const credentials = [...Object.values(headers), ...Object.values(tunnel?.headers ?? {})];
    this.#exchanges.push(evidenceOf(request, outcome, credentials));
  };

  /** A connection for several messages. The visit closes it. */
  open = async (protocol?: Protocol): Promise<Connection> => {
    const connection = await openConnection(this.target.address, protocol);
    this.#connections.push(connection);
    return connection;
  };

  /** Octets on a connection of their own, and its first answer. @throws Limited */
  sendOctets = (octets: string, { method = 'GET', waitMs }: OctetsOptions = {}): Promise<Outcome> => {
    const { address, patience } = this.target;
    const [asked = ''] = octets.trimStart().split(' HTTP/', 1);
    return withPatience(patience, asked.slice(0, askedCharactersMax), async () => {
      const outcome = await exchange(address, octets, method, waitMs);
      this.note(octets, outcome);
      return outcome;
    });
  };

  /** One request on a connection of its own; no answer is an outcome, too. What it creates is removed at the end. */
  attempt = async (request: Request): Promise<Outcome> => {
    const { method, path } = request;
    const outcome = await this.sendOctets(this.octetsOf(request), { method });
    if (method === 'POST' && path === this.target.collection && !('none' in outcome))
      this.removeCreated(outcome);
    return outcome;
  };

  /** One request on a connection of its own. @throws NoAnswer */
  send = async (request: Request): Promise<Answer> => {
    const outcome = await this.attempt(request);
    if ('none' in outcome) throw new NoAnswer(`${request.method} ${request.path}: ${outcome.none}`);
    return outcome;
  };

  /** A new document from the sample. @throws CannotApply where there is none */
  sample = (): Readonly<Record<string, unknown>> => {
    const document = sampleOf(this.target);
    if (document === undefined) throw new CannotApply('the target has no sample document to create');
    return document;
  };

  /** Creates a member by POST of the sample, and removes it at the end. @throws NoAnswer */
  post = (parts: Pick<Request, 'headers' | 'json' | 'isAnonymous'> = {}): Promise<Answer> => {
    const json = parts.json ?? this.sample();
    return this.send({ ...parts, method: 'POST', path: this.target.collection, json });
  };

  /** Creates a member and reads it. @throws CannotApply where the server does not let it */
  create = async (): Promise<Member> => {
    const answer = await this.post();
    if (answer.status !== 201 && answer.status !== 200)
      throw new CannotApply(`the sample document cannot be created: POST is answered ${answer.status}`);
    const path = memberPathOf(this.target, answer);
    if (path === undefined) throw new CannotApply('the answer to POST does not say where the new member is');
    const read = await this.send({ method: 'GET', path });
    if (read.status !== 200)
      throw new CannotApply(`the new member cannot be read: GET is answered ${read.status}`);
    return { path, tag: fieldOf(read, 'ETag') };
  };

  /** Removes the path when the visit ends. */
  removeLater = (path: string): void => {
    this.#made.add(path);
  };

  /** Removes when the visit ends what the answer to a POST says that it created. */
  removeCreated = (answer: Answer): void => {
    // A target without a sample is no collection: a receiver of webhooks answers POST, too.
    if (this.target.sample === undefined) return;
    const path = answer.status < 300 ? memberPathOf(this.target, answer) : undefined;
    if (path !== undefined) this.#made.add(path);
  };

  /** Closes its connections and removes what it made. @returns the paths that the server did not let it remove */
  end = async (): Promise<readonly string[]> => {
    for (const connection of this.#connections) connection.close();
    const left: string[] = [];
    for (const path of this.#made) if (!(await remove(this.target, path))) left.push(path);
    return left;
  };
}

async function remove(target: Target, path: string): Promise<boolean> {
  const octets = requestText(target, { method: 'DELETE', path });
  try {
    const outcome = await withPatience(target.patience, `DELETE ${path}`, () =>
      exchange(target.address, octets, 'DELETE'),
    );
    return !('none' in outcome) && (outcome.status < 300 || outcome.status === 404 || outcome.status === 410);
  } catch (error) {
    // What a limit keeps is named like everything that could not be removed.
    if (error instanceof Limited) return false;
    throw error;
  }
}

/** The path of a new member: Location, or the collection's path and the id of the document. */
export function memberPathOf(target: Target, answer: Answer): string | undefined {
  const [location] = valuesOf(answer, 'Location');
  const located = location === undefined ? undefined : pathOf(target, location);
  return located ?? documentPath(target, documentIn(jsonOf(answer), target.idMember));
}
